"""The journey of a query, in the order in which it happens:

    text ─ parse ─ analyse (Spark) ─ rule on functions ─ lower ─ PLAN_RULES ─ keep (differentiate) ─ PLAN_RULES
         ─ MaintenancePlan

Pure but for the questions to Spark, which gives names and types and is asked through `Analyzer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from sqlglot.errors import SqlglotError

from engine.algebra.nodes import Node
from engine.algebra.trees import leaves
from engine.algebra.types import INSTEAD, has_unreadable_changes, unstorable
from engine.compile import functions
from engine.compile.elsewhere import UNREAD, way_out
from engine.compile.exactness import refuse_inexact_decisions
from engine.compile.keep import Kept, choose
from engine.compile.lower import Relations, lower, rename_outputs
from engine.compile.lower.moments import exact_moments
from engine.compile.optimize import PLAN_RULES, Rule, optimize
from engine.compile.parse import Limits, ParsedQuery, in_each_text, naming_the_view, parse, place_of, unknown_relation
from engine.compile.picture import Picture
from engine.compile.plan import MaintenancePlan
from engine.compile.plan_tree import opaque_tree, plan_tree
from engine.compile.positions import clause_position, output_position
from engine.compile.render import render, render_call
from engine.compile.replay import replay_of
from engine.compile.unnamed import columns_named
from engine.compile.warnings import warnings_of
from engine.errors import (
    InvalidArgument,
    QueryError,
    QueryParseError,
    QueryTooComplex,
    UnsupportedOperator,
    VolatileFunction,
)
from engine.lake.opinion import Opinion
from engine.lake.sql_functions import SqlFunction
from engine.lake.tables import ILLEGAL_IN_NAMES
from engine.records import Column, Notice, Reason, ReasonCode, View

T = TypeVar("T")
Volatility = functions.Volatility


class Analyzer(Protocol):
    """Spark's opinion. In statements the sources stand under their own names."""

    def describe(self, sql: str) -> tuple[Column, ...]: ...

    def same_semantics(self, one: str, other: str) -> bool: ...

    def opinion(self, sql: str) -> Opinion:
        """Would it give the same answer again?"""

    def look_up(self, function: str) -> SqlFunction | None:
        """What somebody wrote in SQL; None for all other functions."""

    def kind_of(self, function: str) -> functions.Kind:
        """Of a function that is not written in SQL: one value for each row, or for each group?"""

    def show_view(self, name: str, sql: str) -> None:
        """From now on a query means this text by the name."""

    def meaning(self, functions: tuple[str, ...]) -> str:
        """What outside of its text decides what a query means: settings, and the bodies of these functions."""


@dataclass(frozen=True)
class Request:
    text: str
    #: every source and stream table that a query may name
    relations: Mapping[str, tuple[Column, ...]]
    limits: Limits = field(default_factory=Limits)
    #: all the views that it may name
    views: tuple[View, ...] = ()
    #: asked for refresh_mode FULL: what cannot be maintained is no obstacle
    full: bool = False
    #: what the settings say of functions
    functions: functions.FunctionRules = field(default_factory=functions.FunctionRules)
    #: what makes the plan cheaper; the plan is as right without
    rules: tuple[Rule, ...] = PLAN_RULES


def compile_query(request: Request, analyzer: Analyzer) -> MaintenancePlan:
    """The plan of a query, also when it can only be recomputed. Raises for what is wrong with the query itself."""
    try:
        return _compiled(request, analyzer)
    except RecursionError:
        raise QueryTooComplex(
            "the query has too long a row of operators", hint="IN (…) instead of many OR, VALUES instead of many UNION"
        ) from None


def _compiled(request: Request, analyzer: Analyzer) -> MaintenancePlan:
    began = time.perf_counter()
    asked = _Timed(analyzer)
    parsed = parse(request.text, request.limits, request.views, request.relations)
    sources = known_sources(parsed, request.relations)
    if not sources:
        raise QueryParseError(
            "the query reads no source, so its result would never change",
            position=clause_position(parsed.tree, parsed.text),
            hint="create an ordinary table instead",
        )
    for view in parsed.views:
        with naming_the_view(view.name, place_of(parsed, view.name)), _read_by_spark(view.query):
            asked.show_view(view.name, view.query.text)
    pictures = [Picture("parse", parsed.rendered(pretty=True), None, _ms_since(began))]
    with _read_by_spark(parsed):
        columns = asked.describe(parsed.text)
    visible, notices = _legal_names(columns, parsed)
    relations = {name.casefold(): (name, request.relations[name]) for name in sources}
    known = functions.declared(
        [each.tree for each in parsed.texts], request.functions.immutable, asked.look_up, asked.kind_of
    )
    ruling = _ruling(parsed, known, request, asked)
    notices += ruling.notices
    root, kept, reason = None, None, ruling.reason
    unique: tuple[str, ...] = ()
    try:
        if ruling.volatility is not Volatility.VOLATILE:
            root, made = _canonical(parsed, relations, visible, asked, request, known.functions)
            in_each_text(parsed, lambda query: _trust(query, asked))
            pictures += made.pictures
            notices += made.notices
            unique = made.made_unique
        if root is not None and ruling.reason is None:
            kept, keeping = _keep(root, request.rules)
            pictures += keeping
            notices += warnings_of(root, kept, parsed.text)
    except (UnsupportedOperator, RecursionError) as failure:
        error = failure if isinstance(failure, UnsupportedOperator) else _too_long()
        if ruling.reason is not None:
            pass  # it is recomputed anyway
        elif request.full:
            reason = Reason(ReasonCode.REQUESTED_FULL, "refresh_mode is FULL")
        else:
            reason = Reason(ReasonCode.UNSUPPORTED, error.message, error.position, error.fragment)
        kept, unique = None, ()
    except VolatileFunction as error:
        # that the order of rows decides is found out by looking closer
        if not request.full:
            raise
        ruling = functions.volatile_in_full(error)
        reason, unique = ruling.reason, ()
        notices += ruling.notices
    used = _used(kept.full) if kept else columns_named(parsed, {name: request.relations[name] for name in sources})
    plan = MaintenancePlan(
        query=request.text,
        views=tuple((view.name, view.query.text) for view in parsed.views),
        sources=sources,
        used_columns=used,
        root=root if kept or unique else None,
        kept=kept,
        full_reason=reason,
        visible=visible,
        pictures=tuple(pictures),
        notices=notices,
        tree=plan_tree(root, kept) if kept and root else opaque_tree(sources, reason),
        replay=None,
        functions=known.names,
        meaning=asked.meaning(known.names),
        made_unique=unique,
        planning_ms=0.0,
        analysis_ms=0.0,
    )
    if ruling.volatility is Volatility.STABLE:
        read = [column.name for _, columns in relations.values() for column in columns]
        plan = replace(plan, replay=replay_of(plan.canonical_query, plan.views, read, asked))
    return replace(plan, planning_ms=_ms_since(began) - asked.spent_ms, analysis_ms=asked.spent_ms)


def _too_long() -> UnsupportedOperator:
    return UnsupportedOperator("a row of operators as long as in this query cannot be maintained differentially")


def _ruling(parsed: ParsedQuery, known: functions.Declared, request: Request, asked: _Timed) -> functions.Ruling:
    """Raises for what may not be maintained; says why where it has to be recomputed."""

    def of(query: ParsedQuery) -> functions.Ruling:
        ruling = functions.rule(
            functions.classify(query.tree, known.functions),
            query.text,
            full=request.full,
            policy=request.functions.policy,
            opinion=asked.opinion(query.text),
            overruled=known.overruled,
        )
        if query.unread is not None and ruling.volatility is not Volatility.IMMUTABLE:
            raise query.unread  # what changes by itself is recomputed when it is due, for which its calls must be known
        return ruling

    decisive = functions.Ruling(Volatility.IMMUTABLE)
    for view in parsed.views:
        place = place_of(parsed, view.name)
        with naming_the_view(view.name, place):
            found = of(view.query)
        if functions.worst(decisive.volatility, found.volatility) is not decisive.volatility:
            decisive = found.in_view(view.name, place)
    found = of(parsed)
    return decisive if functions.worst(decisive.volatility, found.volatility) is decisive.volatility else found


@contextmanager
def _read_by_spark(query: ParsedQuery) -> Iterator[None]:
    """What Spark cannot read either is no SQL, of which our own error tells more."""
    try:
        yield
    except QueryParseError as error:
        failure = query.unread if query.unread is not None and error.by_parser else error
        failure.hint = way_out(query.text) or failure.hint or (UNREAD if error.by_parser else None)
        raise failure from (None if failure is error else error)


def _refuse_unread(query: ParsedQuery) -> None:
    if query.unread is not None:
        raise UnsupportedOperator(
            f"Spark can read this query, and Trickle cannot: {query.unread.message}",
            position=query.unread.position,
            hint="write it in another way, or use refresh_mode = 'FULL'",
        )


@dataclass(frozen=True)
class _Made:
    pictures: tuple[Picture, ...]
    notices: tuple[Notice, ...]
    made_unique: tuple[str, ...]


def _canonical(
    parsed: ParsedQuery,
    relations: Relations,
    visible: tuple[Column, ...],
    asked: _Timed,
    request: Request,
    known: Mapping[str, functions.Function],
) -> tuple[Node, _Made]:
    began, before = time.perf_counter(), asked.spent_ms
    in_each_text(parsed, _refuse_unread)
    try:
        lowered, context = lower(
            parsed,
            relations,
            lambda node: _described(asked, render(node)),
            lambda node, call: _described(asked, render_call(node, call)),
            known,
            request.limits.max_grouping_sets,
        )
    except SqlglotError as error:
        text = str(error).splitlines()[0]
        raise UnsupportedOperator("a type in this query is not understood by Trickle", detail=text) from error
    if len(lowered.visible) != len(visible):
        raise UnsupportedOperator("Spark gives this query other columns than its text seems to have")
    root: Node = rename_outputs(lowered, [c.name for c in visible], [c.type for c in visible])
    refuse_inexact_decisions(root, parsed.text)
    root, by_sums = exact_moments(root)
    took_ms = _ms_since(began) - (asked.spent_ms - before)
    picture = Picture("lower", root, None, took_ms)
    optimized = optimize(root, request.rules)
    notices: tuple[Notice, ...] = ()
    if parsed.hints:
        text = f"the hint {', '.join(parsed.hints)} speaks of computing the whole query, and not of maintaining it"
        notices = (Notice(text),)
    if context.ignored_order is not None:
        text = f"{context.ignored_order} has no effect: a stored table has no order"
        notices += (Notice(text, "order when you read it"),)
    unique = (*dict.fromkeys(context.made_unique), *by_sums)
    notices += tuple(Notice(text) for text in unique)
    return optimized.root, _Made((picture, *optimized.pictures), notices, unique)


def _keep(root: Node, rules: tuple[Rule, ...]) -> tuple[Kept, tuple[Picture, ...]]:
    began = time.perf_counter()
    kept = choose(root)
    pictures = [Picture(f"keep {kept.rule.name}", kept.full, None, _ms_since(began))]

    def optimized(name: str, tree: Node | None) -> Node | None:
        if tree is None:
            return None
        pictures.append(Picture(f"{name}: as derived", tree, None, 0.0))
        done = optimize(tree, rules, f"{name}: ")
        pictures.extend(done.pictures)
        return done.root

    full, change = optimized("full", kept.full), optimized("change", kept.change)
    first, append = optimized("first", kept.first), optimized("append", kept.append)
    shortcut = optimized("shortcut", kept.shortcut)
    made = replace(
        kept, full=full or kept.full, change=change or kept.change, first=first, append=append, shortcut=shortcut
    )
    _refuse_odd_types(made)
    return made, tuple(pictures)


def _refuse_odd_types(kept: Kept) -> None:
    """A query may compute with types that cannot be stored, or whose changes cannot be read; its maintenance cannot."""
    for column in kept.hidden:
        if unstorable(column.type) is not None:
            raise UnsupportedOperator(
                f"a value of type {column.type}, which would have to be stored, cannot be maintained differentially"
            )
    for name, columns in _used(kept.full).items():
        for column in columns:
            if has_unreadable_changes(column.type):
                raise UnsupportedOperator(
                    f"changes of {name}.{column.name}, which is of type {column.type}, cannot be read"
                )


def known_sources(parsed: ParsedQuery, relations: Mapping[str, object]) -> tuple[str, ...]:
    """What it reads, as it is called in the workspace. Every name in its texts must be known."""
    known = {name.casefold(): name for name in relations}
    views = {view.name.casefold(): view for view in parsed.views}
    in_each_text(parsed, lambda query: _refuse_unknown(query, relations, known.keys() | views.keys()))
    return tuple(known[name.casefold()] for name in parsed.sources)


def _refuse_unknown(query: ParsedQuery, relations: Mapping[str, object], known: Collection[str]) -> None:
    for name in query.named:
        if name.casefold() not in known:
            raise unknown_relation(name, relations, place_of(query, name))


def _described(asked: _Timed, sql: str) -> tuple[Column, ...]:
    """Of a part of the query in our own words. If Spark refuses these, it is not the query that is wrong."""
    try:
        return asked.describe(sql)
    except QueryError as error:
        raise UnsupportedOperator(
            "a part of this query is not understood as Spark understands it",
            detail=f"{error.message}: {sql}",
            hint="write it in another way, or use refresh_mode = 'FULL'",
        ) from error


def _trust(parsed: ParsedQuery, asked: _Timed) -> None:
    """The parser is not believed: Spark must find that its reading means the same as the text."""
    try:
        trusted = asked.same_semantics(parsed.text, parsed.rendered())
    except QueryError:
        trusted = False  # Spark has accepted the text itself before, so it is our reading that it refuses
    if not trusted:
        raise UnsupportedOperator(
            "this query is not read by Trickle as Spark reads it",
            position=clause_position(parsed.tree, parsed.text),
            detail=f"read as: {parsed.rendered()}",
            hint="write it in another way, or use refresh_mode = 'FULL'",
        )


def _legal_names(columns: tuple[Column, ...], parsed: ParsedQuery) -> tuple[tuple[Column, ...], tuple[Notice, ...]]:
    """Output names that can be stored; an unnamed expression gets a name made from its text."""
    legal: list[Column] = []
    notices: list[Notice] = []
    if not columns:
        raise QueryParseError("the query has no columns", hint="name some in SELECT")
    for index, column in enumerate(columns):
        name, place = column.name, output_position(parsed.tree, index, len(columns), parsed.text)
        if any(char in ILLEGAL_IN_NAMES for char in name):
            name = "_".join("".join(" " if c in ILLEGAL_IN_NAMES else c for c in name).split()).strip("_") or "expr"
            notices.append(Notice(f"the column {column.name} is stored as {name}", "name it with AS"))
        if name.casefold().startswith("__trickle"):
            raise InvalidArgument(
                f"the column name {name} is reserved", position=place, hint="names with __trickle are Trickle's own"
            )
        if name.casefold() in {each.name.casefold() for each in legal}:
            raise QueryParseError(f"two columns are named {name}", position=place, hint="rename one with AS")
        if column.type == "void":
            raise QueryParseError(
                f"the column {name} is always NULL and has no type",
                position=place,
                hint="cast it: CAST(NULL AS string), say",
            )
        odd = unstorable(column.type)
        if odd is not None:
            raise QueryParseError(
                f"the column {name} cannot be stored",
                detail=f"it is of type {column.type}, which Delta tables do not have",
                position=place,
                hint=INSTEAD[odd],
            )
        legal.append(replace(column, name=name))
    return tuple(legal), tuple(notices)


def _used(full: Node) -> dict[str, tuple[Column, ...]]:
    found: dict[str, dict[str, Column]] = {}
    for leaf in leaves(full):
        columns = found.setdefault(leaf.leaf.name, {})
        columns.update((source, Column(source, type_)) for _, source, type_ in leaf.fields)
    return {name: tuple(columns.values()) for name, columns in found.items()}


class _Timed:
    """An analyzer that remembers its answers and how long they took."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._answers: dict[str, tuple[Column, ...]] = {}
        self.spent_ms = 0.0

    def describe(self, sql: str) -> tuple[Column, ...]:
        if sql not in self._answers:
            self._answers[sql] = self._timed(lambda: self._analyzer.describe(sql))
        return self._answers[sql]

    def same_semantics(self, one: str, other: str) -> bool:
        return self._timed(lambda: self._analyzer.same_semantics(one, other))

    def opinion(self, sql: str) -> Opinion:
        return self._timed(lambda: self._analyzer.opinion(sql))

    def show_view(self, name: str, sql: str) -> None:
        self._timed(lambda: self._analyzer.show_view(name, sql))

    def kind_of(self, function: str) -> functions.Kind:
        return self._timed(lambda: self._analyzer.kind_of(function))

    def look_up(self, function: str) -> SqlFunction | None:
        return self._timed(lambda: self._analyzer.look_up(function))

    def meaning(self, functions: tuple[str, ...]) -> str:
        return self._timed(lambda: self._analyzer.meaning(functions))

    def _timed(self, ask: Callable[[], T]) -> T:
        began = time.perf_counter()
        try:
            return ask()
        finally:
            self.spent_ms += _ms_since(began)


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
