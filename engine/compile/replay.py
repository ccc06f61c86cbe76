"""How the answer of a query that changes by itself is computed a second time: with the moment of the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlglot import exp

from engine.compile import functions
from engine.compile.parse import parse
from engine.errors import QueryError
from engine.lake.opinion import Opinion

#: some moment, to ask Spark what is left when one is written in
_SOME_MOMENT = datetime(2001, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC)


@dataclass(frozen=True)
class Replay:
    """IMMUTABLE queries need none, and VOLATILE ones have none."""

    #: where a moment is written in; none where that is not enough
    calls: tuple[functions.ClockCall, ...] = ()
    #: why it cannot be computed again
    obstacle: str | None = None
    #: does it also tell who asks, and in which catalog and schema?
    asks_session: bool = False

    def at(self, text: str, moment: datetime) -> str:
        return functions.at_moment(text, self.calls, moment)


def replay_of(text: str, opinion: Callable[[str], Opinion]) -> Replay:
    """Of a query whose answer is STABLE. Spark is asked whether anything still reads the clock."""
    tree = parse(text).tree
    replay = Replay(functions.clock_calls(tree, text))
    try:
        left = opinion(replay.at(text, _SOME_MOMENT))
    except QueryError as error:
        return Replay(obstacle=f"no moment can be written into it: {error.message}", asks_session=opinion(text).session)
    # DATE 'today' is a day to Spark as soon as it has read the text: of that, only the text tells
    if left.words or any(isinstance(each.node, exp.Literal) for each in functions.classify(tree) if not each.suspected):
        return Replay(obstacle="a word such as 'today' is read by Spark's own clock", asks_session=left.session)
    if left.clock:
        return Replay(obstacle="a function that it calls reads Spark's own clock", asks_session=left.session)
    return Replay(replay.calls, asks_session=left.session)
