"""The program `trickle`: arguments in, exit code out.

Exit codes: 0 fine, 1 the thing asked about is bad, 2 usage, 3 refused, 4 failed. Only what every command needs
is imported here, so that `trickle --help` answers at once.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from engine.cli import (
    cdc,
    dashboard,
    demo,
    explain,
    looking,
    scheduler,
    sources,
    sql,
    stream_tables,
    upkeep,
    views,
    workspace,
)
from engine.cli.output import Output
from engine.cli.session import SET_LISTS
from engine.errors import InternalError, InvalidArgument, TrickleError

#: the groups of commands, in the order of the help; each module has `add_commands`
GROUPS = (workspace, demo, sources, cdc, views, stream_tables, upkeep, looking, explain, sql, scheduler, dashboard)

INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """Says what is wrong in the words of all our errors, with the nearest command."""

    def error(self, message: str) -> NoReturn:
        raise InvalidArgument(message, hint=f"`{self.prog} --help` tells what is possible")


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    out = Output()
    args = argparse.Namespace()
    try:
        args = parse(words)
        out = Output(as_json=args.json)
        return int(args.run(args, out))
    except TrickleError as error:
        out.progress("")
        out.error(error, getattr(args, "sql_text", None))
        return error.exit_code
    except KeyboardInterrupt:
        out.progress("")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough (`trickle history | head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("TRICKLE_TRACEBACK"):
            raise
        out.progress("")
        out.error(
            InternalError(
                f"{type(error).__name__}: {error}",
                detail="this is a mistake in Trickle itself",
                hint="run it again with TRICKLE_TRACEBACK=1 and report what it prints",
            )
        )
        return InternalError.exit_code


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = build_parser()
    try:
        args = parser.parse_args(words)
    except InvalidArgument as error:
        raise _with_nearest_command(error, words, parser) from error
    if args.command is None:
        args.run = dashboard.without_command(parser)
    return args


def build_parser() -> Parser:
    parser = Parser(
        prog="trickle",
        description="Stream tables on Spark and Delta: query results that stay fresh.",
        epilog="Without a command, in a terminal: the dashboard. Exit codes: 0 fine, 1 bad, 2 usage, "
        "3 refused, 4 failed.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser, title="commands")
    for group in GROUPS:
        group.add_commands(commands)
    add_common(parser, depth=0)
    return parser


def add_common(parser: argparse.ArgumentParser, *, depth: int) -> None:
    """The options that may stand before a command as well as after it."""
    absent = None if depth == 0 else argparse.SUPPRESS
    off = False if depth == 0 else argparse.SUPPRESS
    group = parser.add_argument_group("everywhere")
    group.add_argument("-w", "--workspace", metavar="DIR", default=absent, help="the workspace; default: where you are")
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        dest=SET_LISTS[depth],
        default=absent,
        help="a setting for this call; may be repeated",
    )
    group.add_argument("--json", action="store_true", default=off, help="answer in JSON")
    group.add_argument("-y", "--yes", action="store_true", default=off, help="do not ask")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                add_common(below, depth=depth + 1)


def _with_nearest_command(
    error: InvalidArgument, words: Sequence[str], parser: argparse.ArgumentParser
) -> InvalidArgument:
    names = command_names(parser)
    first = next((word for word in words if not word.startswith("-")), None)
    if first is None or first in names:
        return error
    near = difflib.get_close_matches(first, names, n=1)
    hint = f"did you mean `trickle {near[0]}`?" if near else error.hint
    return InvalidArgument(f"there is no command {first}", detail=f"there are: {', '.join(names)}", hint=hint)


def command_names(parser: argparse.ArgumentParser) -> list[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices)
    return []


if __name__ == "__main__":
    sys.exit(main())
