"""status, show, history: looking without changing anything."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from typing import Any

from engine.cli.output import Cell, Column, Output
from engine.cli.session import open_engine
from engine.cli.wording import (
    OUTCOME_COLOURS,
    STATE_COLOURS,
    age_text,
    clock_text,
    rows_text,
)
from engine.durations import format_took
from engine.errors import InvalidArgument
from engine.records import (
    Frontier,
    Outcome,
    RefreshRecord,
    SchedulerPlace,
    SchedulerStatus,
    StreamTable,
    StreamTableStatus,
)


def add_commands(commands: _SubParsersAction[Any]) -> None:
    status = commands.add_parser("status", help="how the stream tables are", description="How things are.")
    status.add_argument("name", nargs="?")
    status.set_defaults(run=run_status)

    show = commands.add_parser("show", help="all about one stream table", description="One stream table.")
    show.add_argument("name")
    show.set_defaults(run=run_show)

    history = commands.add_parser("history", help="past refreshes", description="Past refreshes, newest first.")
    history.add_argument("name", nargs="?")
    history.add_argument("--limit", type=_positive, default=20, help="how many; default: 20")
    history.set_defaults(run=run_history)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise InvalidArgument(f"--limit {text} is not a positive number", hint="write --limit 20")
    return int(text)


# --- status ------------------------------------------------------------------------------------------------


def run_status(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        if args.name:
            status = engine.status(args.name)
            out.json(status) if out.as_json else _print_status(status, out)
            return 0
        overview = engine.overview()
    if out.as_json:
        out.json(overview)
        return 0
    out.line(f"{overview.workspace}: {len(overview.tables)} stream tables, {_scheduler(overview.scheduler)}")
    if not overview.tables:
        out.line("next: trickle source add NAME --path PATH, then trickle create NAME 'SELECT …'")
        return 0
    out.line()
    print_statuses(overview.tables, out)
    return 0


def print_statuses(statuses: tuple[StreamTableStatus, ...], out: Output) -> None:
    out.table(
        (
            Column("STATE"),
            Column("NAME"),
            Column("MODE"),
            Column("STALE", right=True),
            Column("SCHEDULE", right=True),
            Column("LAST", right=True),
            Column("ROWS"),
            Column("DUE"),
            Column("ISSUE"),
        ),
        [_status_row(each) for each in statuses],
    )


def _status_row(status: StreamTableStatus) -> tuple[Cell, ...]:
    last = status.last
    return (
        (status.state.value, STATE_COLOURS[status.state]),
        status.name,
        status.effective_mode,
        age_text(status.staleness_s),
        status.schedule,
        "-" if last is None else format_took(last.duration_ms),
        "-" if last is None else rows_text(last),
        clock_text(status.next_due_at),
        _issue(status),
    )


def _issue(status: StreamTableStatus) -> Cell:
    if status.error:
        return (status.error, "red")
    return (_why_full(status), "dim")


def _why_full(status: StreamTableStatus) -> str:
    """A differential stream table needs no explanation."""
    return "" if status.reason is None or status.effective_mode != "full" else status.reason.text


def _scheduler(scheduler: SchedulerStatus) -> str:
    match scheduler.place:
        case SchedulerPlace.HERE:
            return "scheduler here"
        case SchedulerPlace.ELSEWHERE:
            return f"scheduler in process {scheduler.holder_pid}"
        case SchedulerPlace.PAUSED:
            return "scheduler paused"
        case SchedulerPlace.NOBODY:
            return "no scheduler (start one with `trickle run` or `trickle ui`)"


def _print_status(status: StreamTableStatus, out: Output) -> None:
    last = status.last
    out.facts(
        [
            ("stream table", status.name),
            ("state", out.painted(status.state.value, STATE_COLOURS[status.state])),
            ("mode", f"{status.refresh_mode.value}, at present {status.effective_mode}"),
            ("reason", _why_full(status)),
            ("schedule", _schedule(status.schedule, status.interval_s)),
            ("stale for", age_text(status.staleness_s)),
            ("next due", clock_text(status.next_due_at)),
            ("last refresh", "" if last is None else _refresh_text(last)),
            ("reads", ", ".join(status.sources)),
            ("at", _frontier_text(status.frontier)),
            ("read by", ", ".join(status.dependents)),
            ("owner", status.owner),
            ("verified", _verified(status)),
            ("error", out.painted(status.error or "", "red") if status.error else ""),
            ("hint", status.error_hint or ""),
        ]
    )


def _schedule(schedule: str, interval_s: float) -> str:
    text = age_text(interval_s)
    return schedule if text == schedule else f"{schedule} (every {text})"


def _refresh_text(record: RefreshRecord) -> str:
    what = record.outcome.value.lower().replace("_", " ")
    return f"#{record.number} {what} at {clock_text(record.finished_at)} in {format_took(record.duration_ms)}"


def _frontier_text(frontier: Frontier | None) -> str:
    return " ".join(f"{name}@{version.version}" for name, version in (frontier or {}).items())


def _verified(status: StreamTableStatus) -> str:
    if status.verified_at is None:
        return ""
    return f"{'equal' if status.verified_equal else 'differs'} at {clock_text(status.verified_at)}"


# --- show --------------------------------------------------------------------------------------------------


def run_show(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        table: StreamTable = engine.stream_table(args.name)
        status: StreamTableStatus = engine.status(args.name)
    if out.as_json:
        out.json({"table": table, "status": status})
        return 0
    _print_status(status, out)
    out.facts([("comment", table.comment), ("created", clock_text(table.created_at)), ("data", table.path)])
    out.line()
    out.table(
        (Column("COLUMN"), Column("TYPE"), Column("NULLS")),
        [(each.name, each.type, "yes" if each.nullable else "no") for each in table.columns],
    )
    out.line()
    out.line(table.query)
    return 0


# --- history -----------------------------------------------------------------------------------------------


def run_history(args: Namespace, out: Output) -> int:
    with open_engine(args, out, read_only=True) as engine:
        records = engine.history(args.name, limit=args.limit)
    if out.as_json:
        out.json(records)
        return 0
    if not records:
        out.line("no refreshes yet")
        return 0
    out.table(
        (
            Column("#", right=True),
            Column("FINISHED"),
            Column("NAME"),
            Column("OUTCOME"),
            Column("TOOK", right=True),
            Column("IN", right=True),
            Column("ROWS"),
            Column("BY"),
            Column("WHY"),
        ),
        [
            (
                str(each.number),
                clock_text(each.finished_at),
                each.st,
                (each.outcome.value, OUTCOME_COLOURS[each.outcome]),
                format_took(each.duration_ms),
                f"{each.rows_in:,}" if each.rows_in else "-",
                rows_text(each),
                each.initiated_by.value.lower(),
                (each.error or each.reason.text) if each.outcome is Outcome.FAILED else each.reason.text,
            )
            for each in records
        ],
    )
    return 0
