"""Explanations as text: the one printer of plans, for the command line, SQL, and whoever has no better way.

JSON is the record itself, as `engine.codec` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any

from engine.durations import format_took
from engine.errors import Position
from engine.records import Column, Notice, Reason, RefreshRecord
from engine.results import (
    CostError,
    DeltaExplanation,
    Explanation,
    PendingChange,
    PlanNode,
    Preview,
    RefreshModeExplanation,
    Rewrite,
    SourceRead,
    StreamTableExplanation,
    Validation,
)

#: gives a text its colour: 'dim', 'red' …
Paint = Callable[[str, str], str]

#: what this module can print
Explained = (Validation, Preview, Rewrite, DeltaExplanation, StreamTableExplanation, RefreshModeExplanation)


def text_of(explained: Any, paint: Paint = lambda text, _: text) -> str:
    """All that is known, for people."""
    return "\n".join(_lines(explained, paint))


def tree_of(explained: Any) -> str:
    """The operators alone."""
    match explained:
        case PlanNode():
            return "\n".join(f"{lead}{_operator(node)}" for lead, node in explained.drawn())
        case Explanation():
            return tree_of(explained.root)
        case Validation(explanation=None):
            return text_of(explained)
        case Validation() | Preview() | StreamTableExplanation():
            return tree_of(explained.explanation)
        case DeltaExplanation():
            return "\n".join(_cases(explained, lambda text, _: text, trees=True))
        case _:
            return text_of(explained)


def _operator(node: PlanNode) -> str:
    why = f" {node.why}" if node.why else ""
    return f"{node.label} {node.detail}".rstrip() + f"   [{node.rule}]{why}"


@singledispatch
def _lines(explained: Any, paint: Paint) -> Iterator[str]:
    raise TypeError(f"no text for {type(explained).__name__}")


@_lines.register
def _(explained: Explanation, paint: Paint) -> Iterator[str]:
    yield from _facts(_about(explained), paint)
    yield ""
    yield tree_of(explained.root)
    yield from _notices(explained.notices)


@_lines.register
def _(explained: Validation, paint: Paint) -> Iterator[str]:
    problem = explained.problem
    if problem is not None:
        yield from _facts(
            [
                ("valid", paint("no", "red")),
                ("error", f"{problem.code}: {problem.message}"),
                ("at", _place(problem.position, problem.fragment)),
                ("detail", problem.detail or ""),
                ("hint", problem.hint or ""),
            ],
            paint,
        )
    if explained.explanation is not None:
        yield from _facts([("valid", paint("yes", "green"))], paint)
        yield from _lines(explained.explanation, paint)


@_lines.register
def _(explained: Preview, paint: Paint) -> Iterator[str]:
    yield from _lines(explained.explanation, paint)
    yield ""
    names = list(explained.rows.column_names)
    rows = zip(*(column.to_pylist() for column in explained.rows.columns), strict=True)
    cells = [names, *([("NULL" if value is None else str(value)) for value in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
    for number, row in enumerate(cells):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield paint(_printable(line), "dim") if number == 0 else _printable(line)
    shown = len(cells) - 1
    yield paint(f"{shown} row{'' if shown == 1 else 's'}{', the limit' if shown == explained.limit else ''}", "dim")


@_lines.register
def _(explained: Rewrite, paint: Paint) -> Iterator[str]:
    for number, step in enumerate(explained.steps, start=1):
        if number > 1:
            yield ""
        if step.before is not None:
            yield paint(f"-- {number}. {step.name}: before", "dim")
            yield step.before
            yield paint(f"-- {number}. {step.name}: after", "dim")
        else:
            yield paint(f"-- {number}. {step.name}{'' if step.changed else ' (no change)'}", "dim")
        yield step.text
    if explained.left_out:
        yield ""
        more = "one more step" if explained.left_out == 1 else f"{explained.left_out} more steps"
        yield paint(f"-- {more} changed nothing", "dim")
    if explained.reason is not None:
        yield ""
        yield f"recomputed in full: {_reason(explained.reason)}"


@_lines.register
def _(explained: DeltaExplanation, paint: Paint) -> Iterator[str]:
    yield from _cases(explained, paint, trees=False)


def _cases(explained: DeltaExplanation, paint: Paint, *, trees: bool) -> Iterator[str]:
    if explained.reason is not None:
        yield f"-- recomputed in full: {_reason(explained.reason)}"
        yield "-- what would run otherwise:" if explained.cases else "-- so there is no maintenance statement"
    for number, case in enumerate(explained.cases):
        if number:
            yield ""
        yield paint("-- " + ", ".join(f"{name}: {_KINDS[change]}" for name, change in case.changed.items()), "bold")
        if not case.statements:
            yield "-- the result cannot change"
        for each in case.statements:
            yield paint(f"-- {each.name}: reads {', '.join(each.reads) or 'nothing'}", "dim")
            yield each.tree if trees else each.sql + ";"


_KINDS = {"mixed": "rows came and went", "append": "rows came", "none": "no change"}


@_lines.register
def _(explained: RefreshModeExplanation, paint: Paint) -> Iterator[str]:
    problem, reason = explained.problem, explained.reason
    ratio = explained.max_change_ratio
    yield from _facts(
        [
            ("stream table", explained.name),
            ("asked for", explained.requested_mode.value),
            ("next refresh", explained.outcome.value if problem is None else paint(f"{explained.outcome}", "red")),
            ("because", reason.text),
            ("at", _place(reason.position, reason.fragment)),
            ("detail", "" if problem is None else problem.detail or ""),
            ("hint", "" if problem is None else problem.hint or ""),
            ("limit", "" if ratio is None else f"{100 * ratio:g} % of a source's rows"),
            ("estimates", _error(explained.error)),
        ],
        paint,
    )
    for each in explained.alternatives:
        yield ""
        chosen = paint("→ ", "green") if each.chosen else "  "
        ms = "not possible" if each.ms is None else f"~{format_took(each.ms)}"
        yield f"{chosen}{each.way.value.ljust(12)}  {ms.ljust(12)}  {each.basis}"
        for part in each.parts:
            yield paint(f"{' ' * 16}{format_took(part.ms).rjust(8)}  {part.what}", "dim")
    if explained.changes:
        yield ""
    for change in explained.changes:
        yield _change(change)
    yield from _notices(explained.notices)


def _error(error: CostError) -> str:
    if error.median_share is None:
        return ""
    return f"off by {100 * error.median_share:.0f} % (median of the last {error.refreshes})"


def _change(change: PendingChange) -> str:
    versions = f"{'' if change.frontier is None else change.frontier}→{change.head}"
    rows = "" if change.source_rows is None else f" of {change.source_rows:,}"
    about = "about " if change.is_guess else ""
    read = f", {change.rows_read:,} to read" if change.rows_read != change.rows_changed else ""
    changed = f"{change.rows_changed:,} changed row{'' if change.rows_changed == 1 else 's'}"
    return f"source {change.source} {versions}, {change.kind}: {about}{changed}{rows}{read}"


@_lines.register
def _(explained: StreamTableExplanation, paint: Paint) -> Iterator[str]:
    table, status = explained.table, explained.status
    yield from _facts(
        [
            ("stream table", table.name),
            ("state", f"{status.state.value}{': ' + status.error if status.error else ''}"),
            ("asked for", f"{table.refresh_mode.value}, schedule {table.schedule}"),
            *_about(explained.explanation),
            ("last refresh", "" if status.last is None else _refresh(status.last)),
            ("estimates", _error(explained.cost_error)),
            ("fingerprint", table.fingerprint),
            ("comment", table.comment),
        ],
        paint,
    )
    if table.written is not None:
        yield ""
        yield paint(f"-- as written, in the SQL of {table.written.dialect.value}", "dim")
        yield table.written.text
    yield ""
    yield table.query
    yield ""
    yield tree_of(explained.explanation)
    yield ""
    for source in explained.sources:
        yield _source(source)
    yield from _notices(explained.explanation.notices)


def _about(explained: Explanation) -> list[tuple[str, str]]:
    reason = explained.reason
    return [
        ("mode", explained.mode),
        ("reason", "" if reason is None else reason.text),
        ("at", "" if reason is None else _place(reason.position, reason.fragment)),
        ("identity", explained.identity),
        ("columns", _columns(explained.columns)),
        ("hidden", _columns(explained.hidden_columns)),
        ("reads", ", ".join(explained.sources)),
        ("planned in", f"{format_took(explained.planning_ms)}, analysed in {format_took(explained.analysis_ms)}"),
    ]


def _columns(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{each.name} {each.type}" for each in columns)


def _reason(reason: Reason) -> str:
    place = _place(reason.position, reason.fragment)
    return f"{reason.text} ({place})" if place else reason.text


def _place(position: Position | None, fragment: str | None) -> str:
    return ": ".join(part for part in (str(position) if position else "", fragment or "") if part)


def _refresh(record: RefreshRecord) -> str:
    what = record.outcome.value.lower().replace("_", " ")
    rows = f"+{record.rows_inserted:,} ~{record.rows_updated:,} −{record.rows_deleted:,} rows"
    how = f" by {record.strategy}" if record.strategy else ""
    return f"#{record.number} {what} in {format_took(record.duration_ms)}{how}, {rows}; {record.reason.text}"


def _source(source: SourceRead) -> str:
    frontier = "-" if source.frontier is None else str(source.frontier)
    head = "" if source.head is None else f" of {source.head}"
    problem = f"; {source.error}" if source.error else ""
    columns = ", ".join(source.columns)
    return f"source {source.name}: at version {frontier}{head}, changes by {source.changes}; reads {columns}{problem}"


def _notices(notices: tuple[Notice, ...]) -> Iterator[str]:
    for number, notice in enumerate(notices):
        if number == 0:
            yield ""
        yield f"notice: {notice.text}" + (f" (hint: {notice.hint})" if notice.hint else "")


def _facts(pairs: list[tuple[str, str]], paint: Paint) -> Iterator[str]:
    known = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        yield f"{paint(name.ljust(width), 'dim')}  {value}"


def _printable(text: str) -> str:
    """Data must not move the cursor: control characters are shown, not sent."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
