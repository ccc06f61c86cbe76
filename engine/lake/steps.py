"""Statements as Spark runs them, and what is computed before one: kept under its name for as long as it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from engine.lake import by_hand, failures, lookups, queries, views
from engine.lake.by_hand import ByHand
from engine.lake.lookups import Lookup

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from engine.algebra.nodes import Node


@dataclass(frozen=True)
class QueryStep:
    view: str
    sql: str
    #: most likely few rows, whose number is worth knowing
    is_few: bool = False
    #: does it read more than one task should?
    reads_much: bool = False
    #: the views of versions that it reads, perhaps among others
    reads: frozenset[str] = frozenset()
    #: the same rows, where nobody but Spark has to look for them
    lookup: Lookup | None = None
    #: the same again, where they are only chosen among rows that the driver may have
    by_hand: ByHand | None = None


@dataclass(frozen=True)
class Query:
    """A statement as Spark runs it, and the tree that it came from, for engines that speak otherwise."""

    #: reads what the steps made
    sql: str
    #: of the whole statement; None for a query that could not be taken apart: it runs as its owner wrote it
    tree: Node | None = None
    steps: tuple[QueryStep, ...] = ()
    #: does what is left after the steps read more than one task should?
    reads_much: bool = False
    #: the views of versions that what is left reads, perhaps among others
    reads: frozenset[str] = frozenset()
    #: what is left of it, once the view of this step came out without a row
    given_empty: Callable[[str], Query] | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """All of it, for people."""
        steps = [f"CACHE TABLE {step.view} AS\n{step.sql}" for step in self.steps]
        return ";\n\n".join([*steps, self.sql])


@contextmanager
def left_of(session: SparkSession, query: Query, doing: str, *, small: bool) -> Iterator[tuple[Query, bool]]:
    """Runs each step and shows its rows under its name, for as long as the block lasts. Frames made in it keep them.

    Tells what is left to run, and whether a small change came to few rows everywhere. What follows from a step without
    a row is not run at all.
    """
    names: list[str] = []
    try:
        while (step := next((each for each in query.steps if each.view not in names), None)) is not None:
            rows = _without_spark(session, step, doing)
            names.append(step.view)
            if rows is None:
                queries.tune(session, small=small and not step.reads_much)
                rows = _computed(session, step, doing)
            else:
                views.of_rows(session, step.view, rows)
            small = small and rows is not None and rows.num_rows <= queries.SMALL_ROWS
            if rows is not None and rows.num_rows == 0 and query.given_empty is not None:
                query = query.given_empty(step.view)
        yield query, small
    finally:
        for name in names:
            views.forget(session, name)


def _without_spark(session: SparkSession, step: QueryStep, doing: str) -> pa.Table | None:
    if step.lookup is not None:
        return lookups.rows(session, step.lookup, doing)
    if step.by_hand is None:
        return None
    try:
        return by_hand.rows(step.by_hand, partial(views.rows_behind, session))
    except Exception as error:
        raise failures.typed(error, doing) from error


def _computed(session: SparkSession, step: QueryStep, doing: str) -> pa.Table | None:
    """Few rows are brought to the driver, and their number is known then. Others are a checkpoint, as what is cached
    still drags its plan along, to be looked at each time.
    """
    views.make_ready(session, step.reads)
    frame = queries.run(session, step.sql, doing)
    rows = None
    if step.is_few and not any(word in type_ for _, type_ in frame.dtypes for word in _LOST_IN_ARROW):
        rows = queries.collect_at_most(frame, queries.SMALL_ROWS, doing)
    try:
        if rows is None:
            views.of_frame(session, step.view, frame.localCheckpoint(eager=True))
        else:
            views.of_rows(session, step.view, rows, frame.schema)
    except Exception as error:
        raise failures.typed(error, doing) from error
    return rows


#: types whose values do not come back as they were
_LOST_IN_ARROW = ("variant", "interval", "void", "time(")
