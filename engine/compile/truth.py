"""What a condition can come to when some columns are known to be NULL."""

from __future__ import annotations

from enum import Enum
from itertools import product

from sqlglot import exp

from engine.algebra.scalars import Scalar


class Truth(Enum):
    NULL = "null"
    TRUE = "true"
    FALSE = "false"
    #: of what is no condition: anything that is not NULL
    VALUE = "value"


Truths = frozenset[Truth]

_NULL, _TRUE, _FALSE, _VALUE = (frozenset((each,)) for each in Truth)
_CONDITION = _NULL | _TRUE | _FALSE
_ANYTHING = _CONDITION | _VALUE

#: NULL as soon as one operand is
_STRICT_CONDITIONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike)
_STRICT_VALUES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Cast, exp.TryCast)


def can_hold(condition: Scalar, nulls: frozenset[str]) -> bool:
    """May it be true where these columns are NULL? Only a sure no is a no."""
    return Truth.TRUE in _as_condition(_possible(condition.tree, nulls))


def _possible(tree: exp.Expr, nulls: frozenset[str]) -> Truths:
    match tree:
        case exp.Paren():
            return _possible(tree.this, nulls)
        case exp.Column():
            return _NULL if tree.name in nulls else _ANYTHING
        case exp.Null():
            return _NULL
        case exp.Boolean():
            return _TRUE if tree.this else _FALSE
        case exp.Literal():
            return _VALUE
        case exp.Not():
            return frozenset(_OPPOSITE[each] for each in _as_condition(_possible(tree.this, nulls)))
        case exp.And() | exp.Or():
            sides = (_as_condition(_possible(each, nulls)) for each in (tree.left, tree.right))
            together = _both if isinstance(tree, exp.And) else _either
            return frozenset(together(*pair) for pair in product(*sides))
        case exp.Is(expression=exp.Null()):
            return _is_null(_possible(tree.this, nulls))
        case exp.NullSafeEQ():
            return _same(_possible(tree.left, nulls), _possible(tree.right, nulls))
        case exp.Coalesce():
            return _first_of([_possible(each, nulls) for each in (tree.this, *tree.expressions)])
        case exp.Case() if tree.this is None:
            return _branch_of(tree, nulls)
        case exp.Between():
            return _between(*(_possible(tree.args[part], nulls) for part in ("this", "low", "high")))
        case exp.In() if not tree.args.get("query"):
            return _NULL if _possible(tree.this, nulls) == _NULL else _CONDITION
        case _ if isinstance(tree, _STRICT_CONDITIONS):
            return _NULL if _has_null_operand(tree, nulls) else _CONDITION
        case _ if isinstance(tree, _STRICT_VALUES):
            return _NULL if _has_null_operand(tree, nulls) else _ANYTHING
        case _:
            return _ANYTHING


_OPPOSITE = {Truth.NULL: Truth.NULL, Truth.TRUE: Truth.FALSE, Truth.FALSE: Truth.TRUE}


def _as_condition(possible: Truths) -> Truths:
    return (possible - _VALUE) | _TRUE | _FALSE if Truth.VALUE in possible else possible


def _both(one: Truth, other: Truth) -> Truth:
    if Truth.FALSE in (one, other):
        return Truth.FALSE
    return Truth.NULL if Truth.NULL in (one, other) else Truth.TRUE


def _either(one: Truth, other: Truth) -> Truth:
    return _OPPOSITE[_both(_OPPOSITE[one], _OPPOSITE[other])]


def _is_null(possible: Truths) -> Truths:
    return (_TRUE if Truth.NULL in possible else frozenset()) | (_FALSE if possible - _NULL else frozenset())


def _same(one: Truths, other: Truths) -> Truths:
    if one == other == _NULL:
        return _TRUE
    never = (one == _NULL and Truth.NULL not in other) or (other == _NULL and Truth.NULL not in one)
    return _FALSE if never else _TRUE | _FALSE


def _between(value: Truths, low: Truths, high: Truths) -> Truths:
    """Two comparisons: where one bound is NULL, the other one can still say no."""
    if value == _NULL or low == high == _NULL:
        return _NULL
    return _NULL | _FALSE if _NULL in (low, high) else _CONDITION


def _first_of(each: list[Truths]) -> Truths:
    """Of the first that is not NULL."""
    found: Truths = frozenset()
    for possible in each:
        found |= possible - _NULL
        if Truth.NULL not in possible:
            return found
    return found | _NULL


def _branch_of(tree: exp.Case, nulls: frozenset[str]) -> Truths:
    found: Truths = frozenset()
    for branch in tree.args["ifs"]:
        when = _as_condition(_possible(branch.this, nulls))
        if Truth.TRUE in when:
            found |= _possible(branch.args["true"], nulls)
        if when == _TRUE:
            return found
    default = tree.args.get("default")
    return found | (_NULL if default is None else _possible(default, nulls))


def _has_null_operand(tree: exp.Expr, nulls: frozenset[str]) -> bool:
    operands = (
        each for each in tree.args.values() if isinstance(each, exp.Expr) and not isinstance(each, exp.DataType)
    )
    return any(_possible(each, nulls) == _NULL for each in operands)
