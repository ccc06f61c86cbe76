"""IN of a subquery as a value has two answers in Spark, and which two depends on what is negated.

`x IN (SELECT …)` is TRUE where x is known to be among the rows, otherwise FALSE, never NULL; `NOT x IN (SELECT …)` is
TRUE where it is known not to be, otherwise FALSE. So one is not the opposite of the other, and Spark decides what is
negated after it has moved NOT inwards. As a condition of its own that makes no difference: only what is TRUE passes.
"""

from __future__ import annotations

from sqlglot import exp


def is_in(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.In) and tree.args.get("query") is not None


def is_not_in(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Not) and is_in(tree.this.unnest())


def at_the_leaves(tree: exp.Expr, negated: bool = False) -> exp.Expr:
    """The same condition with NOT moved to the IN that it is about. Whatever has none below it stays as it is."""
    if not any(is_in(each) for each in tree.walk()):
        return exp.not_(tree) if negated else tree
    match tree:
        case exp.Paren():
            return exp.paren(at_the_leaves(tree.this, negated), copy=False)
        case exp.Not():
            return at_the_leaves(tree.this, not negated)
        case exp.And() | exp.Or():
            kind = type(tree) if not negated else exp.Or if isinstance(tree, exp.And) else exp.And
            sides = (at_the_leaves(each, negated) for each in (tree.left, tree.right))
            left, right = (each if is_plain(each) else exp.paren(each, copy=False) for each in sides)
            return kind(this=left, expression=right)
        case (
            exp.EQ(this=side, expression=exp.Boolean(this=truth))
            | exp.EQ(this=exp.Boolean(this=truth), expression=side)
        ):
            return at_the_leaves(side, negated if truth else not negated)
        case exp.In() if is_in(tree):
            return exp.not_(tree) if negated else tree
        case exp.Query():
            return exp.not_(tree) if negated else tree
        case _:
            changed = tree.copy()
            for part in list(changed.iter_expressions()):
                part.replace(at_the_leaves(part))
            return exp.not_(changed, copy=False) if negated else changed


def is_plain(tree: exp.Expr) -> bool:
    return not isinstance(tree, exp.And | exp.Or)
