"""Where in the text of a query something stands, for errors that point."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from engine.compile.dialect import Spark4
from engine.errors import Position


def position(node: exp.Expr, text: str) -> Position | None:
    """Where in the text the node begins: the first of its parts that knows."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return position_at(text, min(starts)) if starts else None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: keywords that stand before the first part of a clause that knows its place, by the clause they belong to
_LEADING: tuple[tuple[type[exp.Expr], frozenset[str]], ...] = (
    (exp.Join, _words("NATURAL INNER CROSS LEFT RIGHT FULL OUTER SEMI ANTI JOIN LATERAL (")),
    (exp.SetOperation, _words("UNION EXCEPT MINUS INTERSECT ALL DISTINCT SELECT WITH (")),
    (exp.Query, _words("NOT EXISTS SELECT DISTINCT WITH (")),
    (exp.Exists, _words("NOT EXISTS SELECT DISTINCT WITH (")),
    (exp.Lateral, _words("LATERAL VIEW OUTER SELECT (")),
    (exp.Limit, _words("LIMIT")),
    (exp.Offset, _words("OFFSET")),
    (exp.Qualify, _words("QUALIFY")),
    (exp.Sort, _words("SORT BY")),
    (exp.Cluster, _words("CLUSTER BY")),
    (exp.Rollup, _words("ROLLUP (")),
    (exp.Cube, _words("CUBE (")),
    (exp.GroupingSets, _words("GROUPING SETS (")),
    (exp.Values, _words("VALUES (")),
    (exp.With, _words("WITH RECURSIVE")),
)


def clause_position(node: exp.Expr, text: str) -> Position | None:
    """Where a clause begins, with its keywords, of which sqlglot does not keep the place."""
    leading = next((words for kind, words in _LEADING if isinstance(node, kind)), frozenset[str]())
    # Of two queries the place between them tells most.
    first = node.expression if isinstance(node, exp.SetOperation) else node
    starts = [part.meta["start"] for part in first.walk() if "start" in part.meta]
    if not starts:
        return None
    start = min(starts)
    for token in reversed([each for each in sqlglot.tokenize(text, dialect=Spark4) if each.start < start]):
        if not set(token.text.upper().split()) <= leading:
            break
        start = token.start
    return position_at(text, start)


def position_at(text: str, offset: int) -> Position:
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
