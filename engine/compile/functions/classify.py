"""What in a query gives another answer by itself, with the place and the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.functions.changing import TABLESAMPLE
from engine.compile.functions.known import known
from engine.compile.functions.model import Function, Volatility
from engine.compile.functions.names import LITERAL_FUNCTIONS, name_of
from engine.compile.functions.scalars import words

#: texts that Spark replaces by a moment where it makes a date or a timestamp of them, also where nobody wrote a cast
_SPECIAL = re.compile(r"\s*(now\s*$|(today|tomorrow|yesterday)\b)", re.IGNORECASE)
#: calls that are casts: date('today'), to_timestamp('now')
_CASTING = frozenset(
    words("""
        cast date timestamp to_date to_timestamp to_timestamp_ltz to_timestamp_ntz try_cast try_to_date
        try_to_timestamp
    """)
)


@dataclass(frozen=True)
class Finding:
    """Something that is not immutable."""

    node: exp.Expr
    #: as it is called in the text; a function of somebody's own with its schema, if it is written
    name: str
    volatility: Volatility
    #: continues the sentence that begins with the name
    why: str
    #: only if Spark makes a moment of this text, or finds no column of this name: `engine.lake.opinion` tells
    suspected: bool = False


def classify(tree: exp.Expr, declared: Mapping[str, Function] | None = None) -> tuple[Finding, ...]:
    """Everything in a query that does not depend on its sources alone, in the order of the tree.

    `declared` tells of functions that are none of Spark's own, by the name under which they are called. Nothing found:
    the query is immutable as far as its text tells. Spark has its own opinion, and sees through functions and types.
    """
    found = (_finding(node, declared or {}) for node in tree.walk())
    return tuple(each for each in found if each is not None)


def refined(node: exp.Expr, name: str) -> tuple[Volatility, str]:
    """The volatility of a call of one of Spark's functions, where the arguments make a difference."""
    function = known(name)
    if name == "unix_timestamp" and isinstance(node.args.get("this"), exp.CurrentTimestamp | None):
        return Volatility.STABLE, "reads the clock when it is called without arguments"
    if name == "convert_timezone" and len(_arguments(node)) < 3:
        return Volatility.STABLE, "asks the session for its time zone when it is given only one"
    if name == "aes_encrypt" and _has_its_vector(_arguments(node)):
        return Volatility.IMMUTABLE, ""
    return function.volatility, function.why


def _finding(node: exp.Expr, declared: Mapping[str, Function]) -> Finding | None:
    match node:
        case exp.TableSample():
            return Finding(node.parent or node, "TABLESAMPLE", Volatility.VOLATILE, TABLESAMPLE)
        case exp.Column() if not node.table and node.name.lower() in LITERAL_FUNCTIONS and not node.this.quoted:
            # Only where there is no such column, which whoever resolves names knows.
            function = known(node.name.lower())
            return Finding(node, function.name, function.volatility, function.why, suspected=True)
        case exp.Literal() if node.is_string and _SPECIAL.match(node.name):
            return _special(node)
    name = name_of(node)
    if not name:
        return None
    volatility, why = refined(node, name)
    if volatility is Volatility.UNKNOWN and name in declared:
        volatility, why = declared[name].volatility, declared[name].why
    return None if volatility is Volatility.IMMUTABLE else Finding(node, name, volatility, why)


def _special(text: exp.Literal) -> Finding:
    is_cast = text.parent is not None and name_of(text.parent) in _CASTING
    return Finding(text, f"'{text.name}'", Volatility.STABLE, "is read as a moment of the clock", suspected=not is_cast)


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    return [value for value in (call.args.get(key) for key in call.arg_types) if isinstance(value, exp.Expr)]


def _has_its_vector(arguments: list[exp.Expr]) -> bool:
    """aes_encrypt(text, key, mode, padding, vector): ECB has no vector, and one that is given is used."""
    mode, vector = (arguments[place] if len(arguments) > place else None for place in (2, 4))
    is_ecb = isinstance(mode, exp.Literal) and mode.name.upper() == "ECB"
    if vector is not None and name_of(vector) == "unhex":
        vector = vector.this
    return is_ecb or (isinstance(vector, exp.Literal | exp.HexString) and bool(vector.name))
