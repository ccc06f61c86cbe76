"""From the arguments of a command to an open engine."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.cli.output import Output
from engine.errors import InvalidArgument, SourceWithoutChanges
from engine.records import SparkPhase

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.workspace import Workspace

T = TypeVar("T")

#: where `--set` is kept that was said before the command, after it, and after its action
SET_LISTS = ("set_before", "set_after", "set_last")


def engine_class() -> type[Engine]:
    from engine.engine import Engine

    return Engine


def workspace_of(args: Namespace) -> Workspace:
    from engine.workspace import Workspace

    return Workspace.find(Path(args.workspace or os.environ.get("TRICKLE_WORKSPACE") or "."))


def overrides_of(args: Namespace) -> dict[str, str]:
    overrides: dict[str, str] = {}
    for text in (text for name in SET_LISTS for text in getattr(args, name, None) or ()):
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidArgument(f"--set {text} says no value", hint="write --set key=value")
        overrides[key.strip()] = value
    return overrides


@contextmanager
def open_engine(args: Namespace, out: Output, *, read_only: bool = False, spark: bool = False) -> Iterator[Engine]:
    """The engine of the workspace; with `spark` not before Spark is ready."""
    root = workspace_of(args).root
    overrides = overrides_of(args)
    with engine_class().open(root, read_only=read_only, overrides=overrides, start_spark=spark) as engine:
        if spark:
            await_spark(engine, out)
        yield engine


def await_spark(engine: Engine, out: Output) -> None:
    """Tells a person what Spark is doing meanwhile."""
    began = time.monotonic()
    while (status := engine.spark_status()).phase not in (
        SparkPhase.READY,
        SparkPhase.FAILED,
        SparkPhase.LOST,
        SparkPhase.STOPPED,
    ):
        detail = f" ({status.detail})" if status.detail else ""
        out.progress(f"Spark: {status.phase}{detail} {time.monotonic() - began:.0f}s")
        time.sleep(0.05)
    out.progress("")
    engine.wait_for_spark()


def add_query(command: ArgumentParser, what: str = "the SELECT") -> None:
    """What `text_of` reads."""
    command.add_argument("query", nargs="?", help=f"{what}, or - for standard input")
    command.add_argument("-f", "--file", help="a file that holds the SELECT")


def add_enable_cdf(command: ArgumentParser, where: str = "its sources") -> None:
    """What `asking_for_cdf` is told."""
    command.add_argument(
        "--enable-cdf",
        action=BooleanOptionalAction,
        default=None,
        help=f"may the Change Data Feed be switched on in {where}",
    )


def asking_for_cdf(call: Callable[[bool | None], T], enable_cdf: bool | None, out: Output, *, yes: bool) -> T:
    """Makes the call; when a source lacks its Change Data Feed and somebody can be asked, asks."""
    try:
        return call(enable_cdf)
    except SourceWithoutChanges as error:
        if enable_cdf is not None or not (yes or out.can_ask()):
            raise
        out.error(error)
        if not yes and not out.asked("Switch the Change Data Feed on? Its writers will write a little more."):
            raise
        return call(True)


def text_of(args: Namespace, given: str | None) -> str:
    """The SQL that a command was given: as an argument, in a file, or on standard input."""
    import sys

    if (given is None) == (args.file is None):
        raise InvalidArgument(
            "the SQL is missing" if given is None else "SQL is given twice",
            hint="give it as an argument, as -f FILE, or as - for standard input",
        )
    if given == "-" or args.file == "-":
        return sys.stdin.read()
    if given is not None:
        return given
    try:
        return Path(args.file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidArgument(f"cannot read {args.file}", detail=error.strerror, hint="name another file") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{args.file} is not UTF-8 text", detail=str(error), hint="convert it") from error
