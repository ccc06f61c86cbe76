"""source add, source list, source drop."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace, _SubParsersAction
from typing import TYPE_CHECKING, Any

from engine.cli.output import Column, Output
from engine.cli.session import add_enable_cdf, asking_for_cdf, open_engine
from engine.records import CdcMode, SourceStatus

if TYPE_CHECKING:
    from engine import Engine


def add_commands(commands: _SubParsersAction[Any]) -> None:
    source = commands.add_parser("source", help="what stream tables read: add, list, drop", description="Sources.")
    actions = source.add_subparsers(dest="action", metavar="ACTION", required=True)

    add = actions.add_parser("add", help="give a table a name: a Delta table, or anything that Spark can read")
    add.add_argument("name")
    add.add_argument("--path", required=True, help="the folder or address of the table")
    add.add_argument(
        "--format", default="delta", help="what lies there: delta (default), parquet, csv, json …, jdbc or table"
    )
    add.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="KEY=VALUE",
        help="for Spark's reader of that format: header=false, dbtable=public.orders",
    )
    add.add_argument("--cdc", default="auto", help="how changes are found: auto, cdf, diff or poll")
    add.add_argument("--key", default="", help="the columns that tell rows apart: id or id,line")
    add_enable_cdf(add, "it")
    add.set_defaults(run=run_add)

    listing = actions.add_parser("list", help="all sources")
    listing.set_defaults(run=run_list)

    drop = actions.add_parser("drop", help="forget a source; the table itself stays")
    drop.add_argument("name")
    drop.set_defaults(run=run_drop)


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def run_add(args: Namespace, out: Output) -> int:
    key = tuple(part.strip() for part in args.key.split(",") if part.strip())
    with open_engine(args, out) as engine:
        status = asking_for_cdf(
            lambda enable_cdf: engine.add_source(
                args.name,
                args.path,
                format=args.format,
                cdc_mode=args.cdc,
                key=key,
                enable_cdf=enable_cdf,
                options=dict(args.option),
            ),
            args.enable_cdf,
            out,
            yes=args.yes,
        )
        if not status.cdf and status.source.cdc_mode is CdcMode.AUTO and args.enable_cdf is None:
            status = _asked_for_feed(engine, status, out, yes=args.yes)
    if out.as_json:
        out.json(status)
    else:
        if status.source.polled is not None:
            how = f"{status.source.format}, of which a copy is kept"
        else:
            how = f"{'with' if status.cdf else 'without'} Change Data Feed"
        out.line(f"added the source {status.source.name} at version {status.head}, {how}")
    return 0


def _asked_for_feed(engine: Engine, status: SourceStatus, out: Output, *, yes: bool) -> SourceStatus:
    """Its changes can be told without a feed, too; whoever is there may decide."""
    question = f"{status.source.name} does not record its changes. Switch its Change Data Feed on?"
    if yes or (out.can_ask() and out.asked(question)):
        return engine.enable_change_feed(status.source.name)
    return status


def run_list(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        sources = engine.sources()
    if out.as_json:
        out.json(sources)
        return 0
    print_sources(sources, out)
    return 0


def print_sources(sources: tuple[SourceStatus, ...], out: Output) -> None:
    if not sources:
        out.line("no sources yet: trickle source add NAME --path PATH")
        return
    out.table(
        (
            Column("SOURCE"),
            Column("VERSION", right=True),
            Column("CDF"),
            Column("COLUMNS", right=True),
            Column("READ BY"),
            Column("PATH"),
        ),
        [
            (
                each.source.name,
                "-" if each.head is None else f"{each.head:,}",
                ("error", "red") if each.error else _feed(each),
                str(len(each.columns)) if each.columns else "-",
                ", ".join(each.dependents) or "-",
                f"{_place(each)}  {each.error}" if each.error else _place(each),
            )
            for each in sources
        ],
    )


def _feed(status: SourceStatus) -> tuple[str, str] | str:
    if status.source.polled is not None:
        return "polled"
    return "on" if status.cdf else ("off", "yellow")


def _place(status: SourceStatus) -> str:
    polled = status.source.polled
    return status.source.path if polled is None else f"{polled.place} ({polled.format})"


def run_drop(args: Namespace, out: Output) -> int:
    with open_engine(args, out) as engine:
        engine.drop_source(args.name)
    if out.as_json:
        out.json({"dropped": [args.name]})
    else:
        out.line(f"dropped the source {args.name}; its table is untouched")
    return 0
