"""ui: the dashboard, which is also what `trickle` alone opens in a terminal."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable
from typing import Any

from engine.cli.output import Output
from engine.cli.session import overrides_of, workspace_of

USAGE = 2


def add_commands(commands: _SubParsersAction[Any]) -> None:
    ui = commands.add_parser("ui", help="the dashboard (the default)", description="Opens the dashboard.")
    ui.add_argument("--read-only", action="store_true", help="only look")
    ui.set_defaults(run=run_ui)


def run_ui(args: Namespace, out: Output) -> int:
    # The dashboard stands above the engine and is never imported by it, but for this door.
    from trickle_tui.start import run

    workspace = workspace_of(args)
    run(workspace.root, read_only=getattr(args, "read_only", False), overrides=overrides_of(args))
    return 0


def without_command(parser: ArgumentParser) -> Callable[[Namespace, Output], int]:
    def start(args: Namespace, out: Output) -> int:
        if sys.stdin.isatty() and sys.stdout.isatty():
            return run_ui(args, out)
        parser.print_help(out.err)
        return USAGE

    return start
