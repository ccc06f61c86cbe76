"""Functions that somebody made: what is declared of them, and what their bodies say.

The settings may name some immutable, whatever they are made of. Of those that are written in SQL the bodies are read,
and the bodies of what they call: what was created as DETERMINISTIC and draws at random is volatile all the same. Of
others (Java, Python) nobody knows anything, so they are volatile unless they are declared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.algebra.dialect import Spark4
from engine.compile.functions.classify import classify
from engine.compile.functions.clock import is_clock
from engine.compile.functions.known import known
from engine.compile.functions.model import Function, Kind, Volatility
from engine.compile.functions.names import calls
from engine.lake.sql_functions import SqlFunction

LookUp = Callable[[str], SqlFunction | None]
#: what Spark makes of a call: a value for each row, one for each group, or nobody knows
KindOf = Callable[[str], Kind]


@dataclass(frozen=True)
class Declared:
    #: by the name under which they are called
    functions: Mapping[str, Function]
    #: is one declared immutable of which its body, or nobody, says so?
    overruled: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All that a query reaches, through bodies too: if one of them is made anew, the query means something else."""
        return tuple(sorted(self.functions))


def declared(
    trees: Iterable[exp.Expr],
    immutable: Collection[str],
    look_up: LookUp,
    kind_of: KindOf = lambda name: Kind.UNKNOWN,
) -> Declared:
    """What is known of the functions in queries that are none of Spark's own.

    A text in a body that is read as a moment ('today') is left to `engine.lake.opinion`, which sees into bodies.
    """
    found: dict[str, Function] = {}
    overruled: set[str] = set()
    for tree in trees:
        _follow(_unknown(tree), immutable, look_up, found, overruled)
    for name, function in found.items():
        if function.kind is Kind.UNKNOWN and function.volatility is Volatility.IMMUTABLE:
            found[name] = replace(function, kind=kind_of(name))
    return Declared(found, bool(overruled))


def _follow(
    names: Iterable[str],
    immutable: Collection[str],
    look_up: LookUp,
    found: dict[str, Function],
    overruled: set[str],
) -> None:
    for name in names:
        if name in found:
            continue
        found[name] = known(name)  # if it should call itself
        made = look_up(name)
        body = _body(made) if made is not None else None
        if body is not None:
            _follow(_unknown(body), immutable, look_up, found, overruled)
        kind = Kind.UNKNOWN if made is None else Kind.TABLE if made.returns_table else Kind.SCALAR
        volatility, why = _by_itself(name, made, body, found)
        # declared with its schema, or without; what runs code is no matter of trust
        is_declared = name in immutable or name.rpartition(".")[2] in immutable
        if is_declared and volatility not in (Volatility.IMMUTABLE, Volatility.FORBIDDEN):
            overruled.add(name)
            volatility, why = Volatility.IMMUTABLE, ""
        found[name] = Function(name, kind, volatility, why)


def _by_itself(
    name: str, made: SqlFunction | None, body: exp.Expr | None, found: Mapping[str, Function]
) -> tuple[Volatility, str]:
    if made is None:
        return Volatility.UNKNOWN, known(name).why
    if body is None:
        return Volatility.UNKNOWN, "has a body that Trickle cannot read"
    if not made.deterministic:
        return Volatility.VOLATILE, "is not deterministic by its declaration or its body"
    if made.reads_tables or any(table.name for table in body.find_all(exp.Table)):
        return Volatility.VOLATILE, "reads tables that the query does not name"
    inside = [each for each in classify(body, found) if not each.suspected or is_clock(each.name)]
    if not inside:
        return Volatility.IMMUTABLE, ""
    wildest = max(inside, key=lambda each: tuple(Volatility).index(each.volatility))
    return wildest.volatility, f"calls {wildest.name}, which {wildest.why}"


def _body(made: SqlFunction) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(made.body if made.returns_table else f"SELECT {made.body}", dialect=Spark4)
    except (SqlglotError, RecursionError):
        return None


def _unknown(tree: exp.Expr) -> list[str]:
    return list(dict.fromkeys(name for _, name in calls(tree) if known(name).kind is Kind.UNKNOWN))
