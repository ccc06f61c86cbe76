"""demo: a shop that keeps changing, its stream tables, and the dashboard on top."""

from __future__ import annotations

import sys
from argparse import Namespace, _SubParsersAction
from pathlib import Path
from typing import Any

from engine.cli.output import Output
from engine.cli.session import overrides_of
from engine.errors import InvalidArgument

FOLDER = ".demo"
REFRESHES = 3
DIFFERS = 1


def add_commands(commands: _SubParsersAction[Any]) -> None:
    demo = commands.add_parser(
        "demo",
        help="a shop that keeps changing, to try all this on",
        description="Makes or continues the workspace of an online shop whose tables another process keeps "
        "changing, and opens the dashboard on it.",
    )
    demo.add_argument("--dir", default=FOLDER, help=f"where; default: {FOLDER} here")
    demo.add_argument(
        "--check", action="store_true", help="without a screen: refresh, verify, print; exit code 1 if it differs"
    )
    demo.add_argument(
        "--refreshes",
        type=int,
        default=REFRESHES,
        metavar="N",
        help=f"with --check: how many of each stream table; default: {REFRESHES}",
    )
    demo.set_defaults(run=run_demo)


def run_demo(args: Namespace, out: Output) -> int:
    if args.refreshes < 1:
        raise InvalidArgument(f"--refreshes {args.refreshes} is less than one", hint="take 1 or more")
    return run_check(args, out) if args.check else run_dashboard(args, out)


def run_check(args: Namespace, out: Output) -> int:
    from engine.demo.check import check

    problems = check(Path(args.dir), args.refreshes, overrides_of(args), out.line)
    for problem in problems:
        print(problem, file=sys.stderr)
    return DIFFERS if problems else 0


def run_dashboard(args: Namespace, out: Output) -> int:
    from engine.demo.workspace import open_demo

    if not sys.stdout.isatty():
        raise InvalidArgument("the dashboard needs a terminal", hint="without one: trickle demo --check")
    out.progress("opening the shop")
    with open_demo(Path(args.dir)) as (workspace, definitions):
        out.progress("")
        from trickle_tui.start import run

        statements = tuple(definition.statement for definition in definitions)
        run(workspace.root, overrides=overrides_of(args), startup_sql=statements)
    return 0
