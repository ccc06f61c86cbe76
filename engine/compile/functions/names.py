"""Which function of Spark a node of the syntax tree is.

The name is the one that was written, in lower case: the parser of our dialect keeps it. What has no name in the text is
an operator or a keyword, and has the name under which Spark lists it; `!`, `case` and `||` are functions to it too.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.algebra.dialect import WRITTEN

#: operators, and what keywords make, by the name that Spark gives it
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.Neg: "negative",
    exp.And: "and",
    exp.Or: "or",
    exp.Not: "not",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<=>",
    exp.Is: "isnull",
    exp.In: "in",
    exp.Between: "between",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
    exp.Escape: "like",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseNot: "~",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.DPipe: "||",
    exp.Case: "case",
    exp.If: "if",
    exp.Cast: "cast",
    exp.Collate: "collate",
    exp.AtTimeZone: "from_utc_timestamp",
    exp.Bracket: "element_at",
}

#: the qualifiers of Spark's own functions
_BUILTIN = ("builtin.", "system.builtin.")

#: names that are no columns where there is no column of this name
LITERAL_FUNCTIONS = frozenset(
    (
        *("current_date", "current_time", "current_timestamp", "localtimestamp"),
        *("current_path", "current_user", "session_user", "user"),
    )
)


def name_of(node: exp.Expr) -> str:
    """The function's name in lower case, `schema.name` if it is qualified; empty for what calls no function.

    A part that sqlglot adds to a call on its own account (the date that dayofweek takes) is no call.
    """
    if isinstance(node, exp.Anonymous):
        return _without_builtin(_qualified(node))
    written = node.meta.get(WRITTEN)
    if written:
        return str(written)
    operator = _operator(node)
    if operator or not isinstance(node, exp.Func):
        return operator
    return "" if _is_addition(node) else node.sql_name().lower()


def calls(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Every call in a tree, outer ones first, with its name."""
    for node in tree.walk():
        name = name_of(node)
        if name:
            yield node, name


def _operator(node: exp.Expr) -> str:
    if isinstance(node, exp.TryCast):
        return "try_cast" if node.args.get("safe") else "cast"
    return _OPERATORS.get(type(node), "")


def _is_addition(node: exp.Expr) -> bool:
    """Does it stand inside a call that has a name, with nothing in between that has none?"""
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        if above.meta.get(WRITTEN) or isinstance(above, exp.Anonymous):
            return True
        above = above.parent
    return False


def _qualified(call: exp.Anonymous) -> str:
    """The path of `schema.function(…)`; in FROM it stands in the table."""
    name: str = call.name
    inner: exp.Expr = call
    while isinstance(inner.parent, exp.Dot) and inner.parent.expression is inner:
        inner = inner.parent
        name = ".".join([*(part.name for part in inner.this.find_all(exp.Identifier, bfs=False)), name])
    if isinstance(inner.parent, exp.Table) and inner.parent.this is inner:
        name = ".".join(filter(None, (inner.parent.catalog, inner.parent.db, name)))
    return name.lower()


def _without_builtin(name: str) -> str:
    prefix = next((each for each in _BUILTIN if name.startswith(each)), "")
    return name.removeprefix(prefix)
