"""Which expressions Spark takes for one: a + b and b + a are one key of GROUP BY, and one aggregate."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

#: of these, operands may stand in any order, also through several of one kind
_IN_ANY_ORDER: tuple[type[exp.Expr], ...] = (
    exp.Add,
    exp.Mul,
    exp.And,
    exp.Or,
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseXor,
)
_SYMMETRIC: tuple[type[exp.Expr], ...] = (exp.EQ, exp.NullSafeEQ)
_TURNED: dict[type[exp.Expr], type[exp.Binary]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
_ONE_OF_SEVERAL: tuple[type[exp.Expr], ...] = (exp.Paren, *_IN_ANY_ORDER, *_SYMMETRIC, *_TURNED)


def alike(tree: exp.Expr) -> exp.Expr:
    """The one form of all that are taken for one, to be compared and never to be computed."""
    if tree.find(*_ONE_OF_SEVERAL) is None:
        return tree
    return tree.transform(lambda node: _ordered(node) if isinstance(node, _ONE_OF_SEVERAL) else node)


def _ordered(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Paren():
            return alike(node.this)
        case exp.GT() | exp.GTE():
            return _TURNED[type(node)](this=alike(node.right), expression=alike(node.left))
        case exp.Binary():
            deep = isinstance(node, _IN_ANY_ORDER)
            operands = list(_operands(node, type(node))) if deep else [node.left, node.right]
            first, *rest = sorted((alike(each) for each in operands), key=lambda each: each.sql())
            for each in rest:
                first = type(node)(this=first, expression=each)
            return first
        case _:
            return node


def _operands(tree: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if type(tree) is kind:
        for side in (tree.args["this"], tree.args["expression"]):
            yield from _operands(side, kind)
    else:
        yield tree
