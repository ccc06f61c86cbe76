"""Statements as Spark runs them, and what is computed before one: kept under its name for as long as it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.lake import failures, lookups, queries, views
from engine.lake.lookups import Lookup

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

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
            rows = None if step.lookup is None else lookups.rows(session, step.lookup, doing)
            queries.tune(session, small=small and not (step.reads_much and rows is None))
            try:
                if rows is None:
                    frame, rows = _computed(session, step, doing)
                else:
                    frame = queries.local_relation(session, rows)
                queries.show(session, step.view, frame, rows)
            except Exception as error:
                raise failures.typed(error, doing) from error
            names.append(step.view)
            small = small and rows is not None and rows.num_rows <= queries.SMALL_ROWS
            if rows is not None and rows.num_rows == 0 and query.given_empty is not None:
                query = query.given_empty(step.view)
        yield query, small
    finally:
        for name in names:
            queries.drop(session, name)


def _computed(session: SparkSession, step: QueryStep, doing: str) -> tuple[DataFrame, pa.Table | None]:
    """Few rows become a local relation, whose size Spark knows. Checkpoints otherwise, as what is cached still drags
    its plan along, to be looked at each time.
    """
    views.make_ready(session, step.reads)
    frame = queries.run(session, step.sql, doing)
    rows = None
    if step.is_few and not any(word in type_ for _, type_ in frame.dtypes for word in _LOST_IN_ARROW):
        rows = queries.collect_at_most(frame, queries.SMALL_ROWS, doing)
    if rows is not None:
        return queries.local_relation(session, rows, frame.schema), rows
    return frame.localCheckpoint(eager=True), None


#: types whose values do not come back as they were
_LOST_IN_ARROW = ("variant", "interval", "void", "time(")
