"""create, alter, drop, refresh, pause, resume, verify."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace, _SubParsersAction
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from engine.cli.explain import add_dialect
from engine.cli.output import Output
from engine.cli.session import add_enable_cdf, add_query, asking_for_cdf, open_engine, text_of
from engine.cli.wording import refresh_line
from engine.durations import format_took
from engine.errors import InvalidArgument, TrickleError
from engine.records import Outcome, RefreshRecord
from engine.results import AlterKind, AlterResult, CreateResult, VerifyResult

if TYPE_CHECKING:
    from engine.engine import Engine

BAD = 1
FAILED = 4


def add_commands(commands: _SubParsersAction[Any]) -> None:
    create = commands.add_parser(
        "create", help="create a stream table from a query", description="Creates a stream table."
    )
    create.add_argument("name")
    add_query(create)
    create.add_argument("--schedule", default="calculated", help="30s, 1h30m or calculated (the default)")
    create.add_argument("--mode", default="AUTO", help="AUTO (the default), DIFFERENTIAL, FULL or IMMEDIATE")
    add_dialect(create)
    create.add_argument("--comment", default="", help="what it is for")
    create.add_argument(
        "--initialize", action=BooleanOptionalAction, default=True, help="fill it at once (the default)"
    )
    create.add_argument("--append-only", action="store_true", help="its sources only ever get new rows")
    _add_ratio(create)
    create.add_argument("--partition-by", type=_columns, default=(), metavar="A,B", help="columns of its partitions")
    there = create.add_mutually_exclusive_group()
    there.add_argument("--if-not-exists", action="store_true", help="an existing one is fine")
    there.add_argument("--or-replace", action="store_true", help="an existing one becomes what is said here")
    add_enable_cdf(create)
    create.set_defaults(run=run_create)

    alter = commands.add_parser(
        "alter",
        help="change a stream table's settings or its query",
        description="Changes settings at once. Another query computes all rows anew, in one commit.",
    )
    alter.add_argument("name")
    add_query(alter, "another SELECT")
    alter.add_argument("--schedule", help="30s, 1h30m or calculated")
    alter.add_argument("--mode", help="AUTO, DIFFERENTIAL, FULL or IMMEDIATE")
    add_dialect(alter)
    alter.add_argument("--comment", help="what it is for")
    alter.add_argument("--append-only", action=BooleanOptionalAction, default=None, help="its sources only ever grow")
    _add_ratio(alter)
    alter.add_argument("--partition-by", type=_columns, metavar="A,B", help="columns of its partitions; '' for none")
    add_enable_cdf(alter)
    alter.set_defaults(run=run_alter)

    drop = commands.add_parser("drop", help="drop a stream table", description="Drops a stream table.")
    drop.add_argument("name")
    drop.add_argument("--cascade", action="store_true", help="and the stream tables that read it")
    drop.add_argument("--if-exists", action="store_true", help="a missing one is fine")
    drop.set_defaults(run=run_drop)

    refresh = commands.add_parser("refresh", help="refresh now", description="Refreshes stream tables now.")
    refresh.add_argument("names", nargs="*", metavar="NAME")
    refresh.add_argument("--all", action="store_true", help="all of them, in the order of their dependencies")
    refresh.add_argument("--full", action="store_true", help="recompute instead of applying the changes")
    refresh.add_argument("--if-stale", metavar="AGE", help="only those whose rows are older, for example 5m")
    refresh.set_defaults(run=run_refresh)

    for verb, meaning in (("pause", "stop the scheduled refreshes of"), ("resume", "go on refreshing")):
        command = commands.add_parser(
            verb, help=f"{meaning} a stream table", description=f"{verb.capitalize()}s stream tables."
        )
        command.add_argument("names", nargs="+", metavar="NAME")
        command.set_defaults(run=run_pause if verb == "pause" else run_resume)

    verify = commands.add_parser(
        "verify",
        help="compare a stream table with its query",
        description="Recomputes the query at the recorded frontier and compares. Exit code 1 if they differ.",
    )
    verify.add_argument("names", nargs="*", metavar="NAME")
    verify.add_argument("--all", action="store_true", help="all of them")
    verify.set_defaults(run=run_verify)


def _add_ratio(command: ArgumentParser) -> None:
    command.add_argument(
        "--differential-max-change-ratio",
        type=share,
        metavar="SHARE",
        help="in AUTO, refresh fully when more than this share of a source's rows changed; 'default': the settings'",
    )


def share(text: str) -> float | str:
    return text if text == "default" else float(text)


def run_create(args: Namespace, out: Output) -> int:
    args.sql_text = query = text_of(args, args.query)
    with open_engine(args, out, spark=True) as engine:
        create: Callable[..., CreateResult | AlterResult] = engine.create_stream_table
        if args.if_not_exists:
            create = engine.create_stream_table_if_not_exists
        elif args.or_replace:
            create = engine.create_or_replace_stream_table
        result = asking_for_cdf(
            lambda enable_cdf: create(
                args.name,
                query,
                schedule=args.schedule,
                refresh_mode=args.mode.upper(),
                initialize=args.initialize,
                append_only=args.append_only,
                differential_max_change_ratio=args.differential_max_change_ratio,
                comment=args.comment,
                enable_cdf=enable_cdf,
                dialect=args.dialect,
                partition_by=args.partition_by,
            ),
            args.enable_cdf,
            out,
            yes=args.yes,
        )
    if isinstance(result, AlterResult):
        return _told(result, out)
    for notice in result.notices:
        out.notice(notice)
    if out.as_json:
        out.json(result)
    elif not result.created:
        out.line(f"{result.table.name} exists already; nothing was changed")
    else:
        out.line(f"created {result.table.name}, {result.table.schedule}, {result.table.refresh_mode.lower()}")
        if result.refresh is not None:
            out.line(refresh_line(result.refresh))
    return 0


def run_alter(args: Namespace, out: Output) -> int:
    query = text_of(args, args.query) if args.query is not None or args.file is not None else None
    args.sql_text = query
    spark = query is not None or args.mode is not None or args.partition_by is not None
    with open_engine(args, out, spark=spark) as engine:
        result = asking_for_cdf(
            lambda enable_cdf: engine.alter_stream_table(
                args.name,
                query=query,
                dialect=args.dialect,
                schedule=args.schedule,
                refresh_mode=args.mode,
                append_only=args.append_only,
                differential_max_change_ratio=args.differential_max_change_ratio,
                comment=args.comment,
                enable_cdf=enable_cdf,
                partition_by=args.partition_by,
            ),
            args.enable_cdf,
            out,
            yes=args.yes,
        )
    return _told(result, out)


def _told(result: AlterResult, out: Output) -> int:
    for notice in result.notices:
        out.notice(notice)
    if out.as_json:
        out.json(result)
        return 0
    print_altered(result, out)
    return 0


def print_altered(result: AlterResult, out: Output) -> None:
    verb = "nothing to change in" if result.kind is AlterKind.NOTHING else "altered"
    out.line(f"{verb} {result.table.name}: {result.text}")
    if result.refresh is not None:
        out.line(refresh_line(result.refresh))


def run_drop(args: Namespace, out: Output) -> int:
    with open_engine(args, out) as engine:
        if not out.confirmed(_drop_question(engine, args), yes=args.yes):
            out.line("nothing was dropped")
            return 0
        result = engine.drop_stream_table(args.name, if_exists=args.if_exists, cascade=args.cascade)
    for notice in result.notices:
        out.notice(notice)
    if out.as_json:
        out.json(result)
    else:
        out.line(f"dropped {', '.join(result.dropped)}" if result.dropped else f"there is no {args.name}")
    return 0


def _drop_question(engine: Engine, args: Namespace) -> str:
    if not args.cascade:
        return f"Drop the stream table {args.name} and its data?"
    tables = {table.name.lower(): table for table in engine.stream_tables()}
    reached, waiting = {args.name.lower()}, [args.name.lower()]
    while waiting:
        name = waiting.pop()
        below = [each for each, table in tables.items() if name in map(str.lower, table.sources)]
        waiting += [each for each in below if each not in reached]
        reached.update(below)
    names = ", ".join(sorted(tables[each].name for each in reached if each in tables))
    return f"Drop {names or args.name} and their data?"


def run_refresh(args: Namespace, out: Output) -> int:
    _names_or_all(args, "refresh")
    if args.all and args.full:
        raise InvalidArgument("--all and --full do not go together", hint="name the ones to recompute")
    if args.if_stale is not None and (args.all or args.full):
        raise InvalidArgument("--if-stale goes with names alone", hint="trickle refresh NAME --if-stale 5m")
    with open_engine(args, out, spark=True) as engine:
        if args.all:
            records = list(engine.refresh_all())
            code = FAILED if any(record.outcome is Outcome.FAILED for record in records) else 0
            if not out.as_json:
                for record in records:
                    _print_refresh(record, out)
        else:
            records, code = each_name(args.names, lambda name: _refresh(engine, name, args, out), out)
            records = [record for record in records if record is not None]
    if out.as_json:
        out.json(records)
    return code


def _refresh(engine: Engine, name: str, args: Namespace, out: Output) -> tuple[RefreshRecord | None, int]:
    if args.if_stale is None:
        record = engine.refresh_stream_table(name, full=args.full)
    elif (stale := engine.refresh_if_stale(name, args.if_stale)) is not None:
        record = stale
    else:
        if not out.as_json:
            out.line(f"{name} is younger than {args.if_stale}; nothing was refreshed")
        return None, 0
    if not out.as_json:
        _print_refresh(record, out)
    return record, FAILED if record.outcome is Outcome.FAILED else 0


def _print_refresh(record: RefreshRecord, out: Output) -> None:
    out.line(refresh_line(record))
    if record.error_hint:
        print(f"hint: {record.error_hint}", file=out.err)


def run_pause(args: Namespace, out: Output) -> int:
    return _switch(args, out, "paused", lambda engine, name: engine.pause_stream_table(name))


def run_resume(args: Namespace, out: Output) -> int:
    return _switch(args, out, "resumed", lambda engine, name: engine.resume_stream_table(name))


def _switch(args: Namespace, out: Output, done: str, switch: Callable[[Engine, str], Any]) -> int:
    with open_engine(args, out) as engine:

        def one(name: str) -> tuple[Any, int]:
            status = switch(engine, name)
            if not out.as_json:
                out.line(f"{done} {status.name}")
            return status, 0

        statuses, code = each_name(args.names, one, out)
    if out.as_json:
        out.json(statuses)
    return code


def run_verify(args: Namespace, out: Output) -> int:
    _names_or_all(args, "verify")
    with open_engine(args, out, read_only=True, spark=True) as engine:
        names = [table.name for table in engine.stream_tables()] if args.all else args.names

        def one(name: str) -> tuple[VerifyResult, int]:
            result = engine.verify(name)
            if not out.as_json:
                print_verdict(result, out)
            return result, 0 if result.equal else BAD

        results, code = each_name(names, one, out)
    if out.as_json:
        out.json(results)
    elif args.all and not names:
        out.line("no stream tables yet")
    return code


def print_verdict(result: VerifyResult, out: Output) -> None:
    took = format_took(result.duration_ms)
    if result.equal:
        out.line(f"{out.painted('equal', 'green')}   {result.name}: {result.rows:,} rows, {took}")
        return
    out.line(
        f"{out.painted('differs', 'red')} {result.name}: {result.missing:,} missing, "
        f"{result.unexpected:,} unexpected, {took}"
    )
    for example in result.examples:
        out.line(f"          {example}")
    print(f"hint: refresh it with `trickle refresh {result.name} --full`", file=out.err)


def _names_or_all(args: Namespace, verb: str) -> None:
    if bool(args.names) == bool(args.all):
        raise InvalidArgument(
            f"trickle {verb} needs names or --all{', not both' if args.names else ''}",
            hint=f"trickle {verb} NAME, or trickle {verb} --all",
        )


def each_name(names: Iterable[str], one: Callable[[str], tuple[Any, int]], out: Output) -> tuple[list[Any], int]:
    """Does `one` for each name, the later ones also after an error; the worst exit code counts."""
    results, worst = [], 0
    for name in names:
        try:
            result, code = one(name)
            results.append(result)
        except TrickleError as error:
            out.error(error)
            code = error.exit_code
        worst = max(worst, code)
    return results, worst


def _columns(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
