"""cdc: how changes reach the stream tables, and what of them is still to come."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from collections.abc import Sequence
from typing import Any

from engine.cli.output import Cell, Column, Output
from engine.cli.session import open_engine
from engine.cli.wording import age_text, clock_text
from engine.errors import NotFound
from engine.event_records import Severity
from engine.names import same_name
from engine.results import CdcStatus, ChangeBuffer

#: what makes the command's answer a bad one
BAD = 1

_COLOURS = {Severity.OK: "", Severity.WARN: "yellow", Severity.ERROR: "red"}


def add_commands(commands: _SubParsersAction[Any]) -> None:
    cdc = commands.add_parser(
        "cdc",
        help="how changes reach the stream tables, and what waits",
        description="Of each source and each stream table that reads it: how changes are found and why so, "
        "how many wait, and for how long their history is kept. Ends with 1 when some may be lost soon.",
    )
    cdc.add_argument("name", nargs="?", help="a source or a stream table; all of them unless said")
    cdc.add_argument(
        "--buffers", action="store_true", help="one line for each source: what waits for its slowest reader"
    )
    cdc.set_defaults(run=run_cdc)


def run_cdc(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        if args.buffers:
            buffers = tuple(each for each in engine.change_buffer_stats() if args.name in (None, each.source))
            out.json(buffers) if out.as_json else print_buffers(buffers, out)
            return 0
        statuses = tuple(each for each in engine.cdc_status() if args.name is None or _is_about(each, args.name))
    if args.name is not None and not statuses:
        raise NotFound(f"there is neither a source nor a stream table {args.name}", hint="trickle cdc lists all")
    out.json(statuses) if out.as_json else print_changes(statuses, out)
    return BAD if any(each.severity is Severity.ERROR for each in statuses) else 0


def _is_about(status: CdcStatus, name: str) -> bool:
    return same_name(status.source, name) or same_name(status.stream_table or "", name)


def print_changes(statuses: Sequence[CdcStatus], out: Output) -> None:
    if not statuses:
        out.line("no sources yet: trickle source add NAME --path PATH")
        return
    out.table(
        (
            Column("SOURCE"),
            Column("READ BY"),
            Column("MODE"),
            Column("AT", right=True),
            Column("HEAD", right=True),
            Column("WAIT", right=True),
            Column("ROWS", right=True),
            Column("BYTES", right=True),
            Column("SINCE", right=True),
            Column("KEPT FOR", right=True),
            Column("WHY"),
        ),
        [_row(each) for each in statuses],
    )


def _row(status: CdcStatus) -> tuple[Cell, ...]:
    mode = status.in_force if status.asked in (status.in_force, "auto") else f"{status.in_force} for {status.asked}"
    colour = _COLOURS[status.severity]
    return (
        status.source,
        status.stream_table or "-",
        mode,
        "-" if status.frontier is None else str(status.frontier),
        "-" if status.head is None else str(status.head),
        str(status.pending_versions),
        f"{status.pending_rows:,}",
        f"{status.pending_bytes:,}",
        age_text(status.oldest_pending_age_s),
        (age_text(status.head_room_s), colour),
        (status.error or _why(status), colour),
    )


def _why(status: CdcStatus) -> str:
    looked = "" if status.looked_at is None else f"looked at {clock_text(status.looked_at)}"
    told = "" if status.severity is Severity.OK else status.head_room_why
    return "; ".join(filter(None, (told, status.why, looked)))


def print_buffers(buffers: Sequence[ChangeBuffer], out: Output) -> None:
    out.table(
        (
            Column("SOURCE"),
            Column("READERS", right=True),
            Column("WAIT", right=True),
            Column("ROWS", right=True),
            Column("BYTES", right=True),
            Column("SINCE", right=True),
            Column("IN MEMORY", right=True),
            Column("SLOWEST"),
        ),
        [
            (
                each.source,
                str(each.readers),
                str(each.pending_versions),
                f"{each.pending_rows:,}",
                f"{each.pending_bytes:,}",
                clock_text(each.oldest_pending_at),
                f"{each.held_bytes:,}",
                each.slowest or "-",
            )
            for each in buffers
        ],
    )
