"""Where the leaves of a statement are found when Spark runs it: in temporary views, one for each leaf."""

from __future__ import annotations

from sqlglot import exp

from engine.algebra.nodes import Leaf
from engine.compile.render import table


def view_name(leaf: Leaf) -> str:
    """The temporary view that holds a version of a table, a change, or a first statement's result."""
    return f"__trickle_{leaf}"


def in_views(leaf: Leaf) -> exp.Expr:
    return table(view_name(leaf))
