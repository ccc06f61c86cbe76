"""view create, view list, view drop."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from typing import Any

from engine.cli.output import Column, Output
from engine.cli.session import add_query, open_engine, text_of
from engine.records import View
from engine.results import ViewResult


def add_commands(commands: _SubParsersAction[Any]) -> None:
    view = commands.add_parser("view", help="queries under a name: create, list, drop", description="Views.")
    actions = view.add_subparsers(dest="action", metavar="ACTION", required=True)

    create = actions.add_parser("create", help="give a query a name")
    create.add_argument("name")
    add_query(create)
    create.add_argument("--replace", action="store_true", help="an existing view gets this text")
    create.set_defaults(run=run_create)

    listing = actions.add_parser("list", help="all views")
    listing.set_defaults(run=run_list)

    drop = actions.add_parser("drop", help="forget a view that nothing reads")
    drop.add_argument("name")
    drop.add_argument("--if-exists", action="store_true", help="a missing one is fine")
    drop.set_defaults(run=run_drop)


def run_create(args: Namespace, out: Output) -> int:
    args.sql_text = query = text_of(args, args.query)
    with open_engine(args, out, spark=True) as engine:
        made = engine.create_view(args.name, query, or_replace=args.replace)
    if out.as_json:
        out.json(made)
    else:
        print_made(made, out)
    return 0


def print_made(made: ViewResult, out: Output) -> None:
    if not made.changed:
        out.line(f"the view {made.view.name} has this text already")
        return
    out.line(f"{'replaced' if made.replaced else 'created'} the view {made.view.name}")
    if made.rebuilt:
        out.line(f"rebuilt at their next refresh: {', '.join(made.rebuilt)}")


def run_list(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        views = engine.views()
    if out.as_json:
        out.json(views)
    else:
        print_views(views, out)
    return 0


def print_views(views: tuple[View, ...], out: Output) -> None:
    if not views:
        out.line("no views yet: trickle view create NAME 'SELECT …'")
        return
    out.table((Column("VIEW"), Column("QUERY")), [(view.name, " ".join(view.query.split())) for view in views])


def run_drop(args: Namespace, out: Output) -> int:
    with open_engine(args, out) as engine:
        dropped = engine.drop_view(args.name, if_exists=args.if_exists)
    if out.as_json:
        out.json({"dropped": dropped})
    else:
        out.line(f"dropped the view {args.name}" if dropped else "nothing to drop")
    return 0
