"""One refresh, operator by operator: what each did by which rule, and what that cost against the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engine.records import OperatorStats, RefreshRecord
from engine.results import Explanation, tree_leads
from trickle_tui import format, plots
from trickle_tui.paint import EMPTY, Line, Span, columns, cut, left, line, right, span, spread, width
from trickle_tui.views import modes

#: this much over its estimate is worth a word
_OVER = 0.25
#: a share from which one operator is the slow one
_SLOW = 0.5
_SPARK_ROOM = 40


def chosen_index(history: Sequence[RefreshRecord], number: int | None) -> int | None:
    """Which refresh is shown: the one chosen, else the newest that did work."""
    for index, record in enumerate(history):
        if record.number == number:
            return index
    worked = [index for index, record in enumerate(history) if modes.did_work(record)]
    return worked[-1] if worked else len(history) - 1 if history else None


def refresh_lines(history: Sequence[RefreshRecord], index: int, now: datetime, room: int) -> tuple[Line, ...]:
    """Which refresh this is, how it lies among the others, and where its time went."""
    record = history[index]
    changed = format.changes(record.rows_inserted, record.rows_deleted, record.rows_updated)
    start = line(
        Span(f"#{record.number}", "text bold"),
        "  ",
        Span(modes.outcome(record), "failed" if record.error else "text"),
        "  ",
        Span(format.moment(record.finished_at, now), "faint"),
        Span(f"   by {modes.initiator(record)}   ", "dim"),
        f"{changed} rows" if modes.did_work(record) else "",
    )
    lines = [spread(start, _took(record), room)]
    if record.error:
        lines += [cut(line(Span("✖ ", "failed"), record.error.splitlines()[0]), room)]
    elif room >= 100:
        lines.append(EMPTY)
    window = _window(history, index)
    shown = line(
        Span("last 40   " if len(window) == _SPARK_ROOM else f"last {len(window):<5}", "dim"),
        _marked_spark(history, window, index),
    )
    phases = _phases(record, max(20, room - width(shown) - 4))
    if phases is None:
        lines.append(shown)
    else:
        bar, words = phases
        if width(words) + width(shown) + 2 <= room:
            lines.append(spread(shown, bar, room))
            lines.append(spread(span(" " * (10 + window.index(index)) + "▲", "accent"), words, room))
        else:
            lines.append(spread(shown, bar, room))
            lines.append(right(words, room))
    return tuple(lines)


def _took(record: RefreshRecord) -> Line:
    parts = [Span("took ", "dim"), Span(format.took(record.duration_ms), "text bold")]
    if record.estimated_ms:
        over = record.duration_ms / record.estimated_ms - 1
        parts += [Span("   estimate ", "dim"), Span(format.took(record.estimated_ms), "text")]
        if over > _OVER:
            parts.append(Span(f"  ▲ {format.percent(over)} over", "stale"))
    return line(*parts)


def _window(history: Sequence[RefreshRecord], index: int) -> list[int]:
    """Up to forty refreshes that did work, the chosen one among them."""
    shown = [at for at, record in enumerate(history) if modes.did_work(record) or at == index]
    place = shown.index(index)
    end = min(len(shown), max(place + 10, _SPARK_ROOM))
    end = len(shown) if len(shown) - place <= _SPARK_ROOM else end
    return shown[max(0, end - _SPARK_ROOM) : end]


def _marked_spark(history: Sequence[RefreshRecord], window: Sequence[int], index: int) -> Line:
    values = [history[at].duration_ms for at in window]
    painted = plots.sparkline(values, len(values))
    signs = [Span(sign, role) for text, role in painted for sign in text]
    place = window.index(index)
    signs[place] = Span(signs[place].text, "accent")
    return line(*signs)


def _phases(record: RefreshRecord, room: int) -> tuple[Line, Line] | None:
    """The time of a refresh as one bar of its phases, and their names."""
    phases = [(name, ms) for name, ms in record.phases_ms.items() if ms > 0]
    total = sum(ms for _, ms in phases)
    if not phases or total <= 0:
        return None
    slowest = max(ms for _, ms in phases)
    bar: list[Line] = []
    free = room - len(phases) + 1
    for _, ms in phases:
        role = "stale" if ms == slowest and ms / total > _SLOW and len(phases) > 1 else "data"
        bar.append(span("━" * max(1, int(free * ms / total)), role))
    words: list[Line] = []
    for name, ms in phases:
        role = "stale" if ms == slowest and ms / total > _SLOW and len(phases) > 1 else "dim"
        words.append(span(f"{name} {format.took(ms)}", role))
    joined = words[0]
    for word in words[1:]:
        joined = line(joined, Span(" · ", "faint"), word)
    return columns(bar), joined


# The table of operators

_NUMBERS = 46  # Δ in, Δ out, est, time, est
_SHARE = 16


def operator_lines(record: RefreshRecord, room: int) -> tuple[Line, ...]:
    """One row for each operator; what was not measured is a dash."""
    operators = record.operators
    if not operators:
        return ()
    share = room >= 118
    numbers = _NUMBERS + (_SHARE if share else 0) if room >= 90 else 16
    text_room = room - numbers - 2
    tree = tree_leads([each.depth for each in operators])
    longest = max(len(lead) + len(f"{each.label} {each.detail}") for lead, each in zip(tree, operators, strict=True))
    # rules are short: they get what they need, the operators' details the rest
    rules = max(len("RULE"), *(len(each.rule) for each in operators))
    name_room = min(longest + 1, max(20, text_room - 1 - min(rules, int(text_room * 0.38))))
    rule_room = text_room - name_room - 1
    total = sum(each.duration_ms or 0.0 for each in operators)
    head = columns(
        [
            left(span("OPERATOR", "dim"), name_room),
            left(span("RULE", "dim"), rule_room),
            *_number_heads(room, share),
        ]
    )
    return (
        head,
        *(
            _operator(each, lead, name_room, rule_room, total, room, share)
            for lead, each in zip(tree, operators, strict=True)
        ),
    )


def _number_heads(room: int, share: bool) -> list[Line]:
    if room < 90:
        return [right(span("Δ OUT", "dim"), 8), right(span("TIME", "dim"), 7)]
    heads = [
        right(span(text, "dim"), size)
        for text, size in (("Δ IN", 9), ("Δ OUT", 9), ("EST", 8), ("TIME", 8), ("EST", 8))
    ]
    return [*heads, left(span("  SHARE", "dim"), _SHARE - 1)] if share else heads


def _operator(
    each: OperatorStats, lead: str, name_room: int, rule_room: int, total: float, room: int, share: bool
) -> Line:
    part = each.duration_ms / total if each.duration_ms is not None and total > 0 else None
    slow = part is not None and part > _SLOW and total >= 100
    calm = "dim" if each.pruned else "text"
    name = line(
        Span(lead, "line2"),
        Span(each.label, "dim" if each.pruned else "text bold"),
        Span(f" {each.detail}" if each.detail else "", "text" if slow else "dim"),
    )
    numbers = [
        (format.count(each.rows_in) if each.rows_in is not None else "", calm, 9),
        (format.count(each.rows_out), calm, 9),
        (format.count(each.estimated_rows_out), "faint", 8),
        (format.took(each.duration_ms), "stale bold" if slow else calm, 8),
        (format.took(each.estimated_ms), "faint", 8),
    ]
    if room < 90:
        numbers = [(numbers[1][0], calm, 8), (numbers[3][0], numbers[3][1], 7)]
    cells = [left(name, name_room), left(span(each.rule, "text" if slow else "dim"), rule_room)]
    cells += [right(span(text, "faint" if text == "0" else role), size) for text, role, size in numbers]
    if share:
        cells.append(
            left("", _SHARE - 1)
            if part is None
            else line(
                "  ",
                plots.meter(part, 8, "stale" if slow else "data"),
                right(span(format.percent(part), "stale" if slow else "dim"), 5),
            )
        )
    painted = columns(cells)
    return tuple(Span(text, f"{role} on hot") for text, role in painted) if slow else painted


def explanation_lines(explanation: Explanation, room: int) -> tuple[Line, ...]:
    """The plan itself, where no refresh has numbers for it yet."""
    nodes = explanation.root.drawn()
    name_room = min(
        int(room * 0.6),
        max(len(lead) + len(f"{node.label} {node.detail}") for lead, node in nodes) + 2,
    )
    lines = [columns([left(span("OPERATOR", "dim"), name_room), span("RULE", "dim")])]
    for lead, node in nodes:
        name = line(Span(lead, "line2"), Span(node.label, "text bold"), Span(f" {node.detail}", "dim"))
        why = span(f"  {node.why}", "stale") if node.why else EMPTY
        lines.append(cut(columns([left(name, name_room), line(Span(node.rule, "text"), why)]), room))
    lines += [EMPTY, cut(identity_line(explanation), room)]
    return tuple(lines)


def identity_line(explanation: Explanation) -> Line:
    return line(
        Span("rows are kept ", "dim"),
        explanation.identity,
        Span("   planned in ", "dim"),
        format.took(explanation.planning_ms),
        Span("   names and types from Spark in ", "dim"),
        format.took(explanation.analysis_ms),
    )


def why_lines(record: RefreshRecord, room: int) -> tuple[Line, ...]:
    """Why this mode, and which way it went."""
    lines = [line(Span("why     ", "dim"), cut(span(record.reason.text), room - 8))]
    if record.reason.position is not None:
        lines.append(line(" " * 8, Span(f"at {record.reason.position} of the query", "dim")))
    for each in record.operators:
        if each.why:
            lines.append(line(" " * 8, Span(each.label, "text"), Span(f": {each.why}", "dim")))
    if record.strategy:
        lines.append(line(Span("how     ", "dim"), cut(span(record.strategy), room - 8)))
    if record.error_hint:
        lines.append(line(Span("hint    ", "dim"), cut(span(record.error_hint), room - 8)))
    return tuple(lines)


def shares(rows: int, plan_rows: int, sql_rows: int) -> tuple[int, int]:
    """How many rows the plan and its SQL get, frames included; the SQL leaves where it would be a stub."""
    if rows < 14 or not sql_rows:
        return rows, 0
    plan_wanted, sql_wanted = plan_rows + 2, sql_rows + 2
    least_sql = min(sql_wanted, max(5, rows // 3))
    plan = min(plan_wanted, rows - least_sql)
    return plan, rows - plan
