"""How the answer of a query that changes by itself is computed a second time: with the moment of the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Protocol

from sqlglot import exp

from engine.compile import functions
from engine.compile.parse import parse
from engine.errors import QueryError
from engine.lake.opinion import Opinion

#: some moment, to ask Spark what is left when one is written in
_SOME_MOMENT = datetime(2001, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC)

Calls = tuple[functions.ClockCall, ...]


class _Asked(Protocol):
    def opinion(self, sql: str) -> Opinion: ...

    def show_view(self, name: str, sql: str) -> None: ...


@dataclass(frozen=True)
class Replay:
    """IMMUTABLE queries need none, and VOLATILE ones have none."""

    #: where a moment is written in; none where that is not enough
    calls: Calls = ()
    #: the same in the texts of views, by their names
    in_views: Mapping[str, Calls] = field(default_factory=dict)
    #: why it cannot be computed again
    obstacle: str | None = None
    #: does it also tell who asks, and in which catalog and schema?
    asks_session: bool = False

    def at(self, text: str, moment: datetime, view: str | None = None) -> str:
        calls = self.calls if view is None else self.in_views.get(view, ())
        return functions.at_moment(text, calls, moment)


def replay_of(text: str, views: Iterable[tuple[str, str]], columns: Iterable[str], asked: _Asked) -> Replay:
    """Of a query whose answer is STABLE. Spark is asked whether anything still reads the clock.

    `columns`: of all that is read, in any of the texts.
    """
    views = tuple(views)
    trees = {name: parse(sql).tree for name, sql in views}
    tree = parse(text).tree
    named = {
        name.casefold()
        for name in (*columns, *chain.from_iterable(map(functions.names_given, (tree, *trees.values()))))
    }
    in_views = {name: functions.clock_calls(trees[name], sql, named) for name, sql in views}
    replay = Replay(functions.clock_calls(tree, text, named), in_views)
    try:
        for name, sql in views:
            asked.show_view(name, replay.at(sql, _SOME_MOMENT, view=name))
        left = asked.opinion(replay.at(text, _SOME_MOMENT))
    except QueryError as error:
        return Replay(obstacle=f"no moment can be written into it: {error.message}", asks_session=True)
    finally:
        for name, sql in views:
            asked.show_view(name, sql)
    # DATE 'today' is a day to Spark as soon as it has read the text: of that, only the text tells
    if left.words or any(_reads_a_word(each) for each in (tree, *trees.values())):
        return Replay(obstacle="a word such as 'today' is read by Spark's own clock", asks_session=left.session)
    if left.clock:
        return Replay(obstacle="a function that it calls reads Spark's own clock", asks_session=left.session)
    return Replay(replay.calls, replay.in_views, asks_session=left.session)


def _reads_a_word(tree: exp.Expr) -> bool:
    return any(isinstance(each.node, exp.Literal) for each in functions.classify(tree) if not each.suspected)
