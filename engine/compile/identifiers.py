"""`IDENTIFIER('k')`: a name that is said by a text, which Spark puts in place before it reads the query.

Where the text is written there, the name is put in its place here too. A name that nobody can read here could be that
of a source, so such a query is refused in every mode.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from engine.algebra.dialect import Spark4
from engine.compile.positions import position, position_at
from engine.errors import Position, UnsupportedOperator

_WORD = "identifier"


def spell_identifiers(tree: exp.Expr, text: str) -> None:
    """The names in place of the calls, with their places."""
    if _WORD not in text.casefold():
        return
    spelled: set[int] = set()
    for call in [each for each in tree.find_all(exp.Anonymous) if each.name.casefold() == _WORD]:
        kind = _kind(call)
        name = _constant(call.expressions[0]) if len(call.expressions) == 1 else None
        made = _named(name, kind) if kind is not None and name is not None else None
        if made is None:
            raise _not_followed(position(call, text))
        start, end = call.meta["start"], call.meta["end"]
        for part in made.find_all(exp.Identifier):
            part.meta.update(start=start, end=end)
        spelled.add(start)
        table = call.parent
        if isinstance(table, exp.Table):
            table.set("db", made.args.get("db"))
            table.set("catalog", made.args.get("catalog"))
            made = made.this
        call.replace(made)
    refuse_identifiers(sqlglot.tokenize(text, dialect=Spark4), text, spelled)


def refuse_identifiers(tokens: Collection[Token], text: str, spelled: Collection[int] = ()) -> None:
    """Where no name can be put: aliases, functions, and queries that only Spark can read."""
    for (word, bracket), (_, value) in pairwise(pairwise(tokens)):
        kinds = (word.token_type, bracket.token_type, value.token_type)
        is_call = kinds == (TokenType.VAR, TokenType.L_PAREN, TokenType.STRING) and word.text.casefold() == _WORD
        if is_call and word.start not in spelled:
            raise _not_followed(position_at(text, word.start))


def _kind(call: exp.Expr) -> type[exp.Expr] | None:
    """What it names there."""
    if call.arg_key == "using" or isinstance(call.parent, exp.Aliases | exp.Dot):
        return None
    return exp.Table if isinstance(call.parent, exp.Table) else exp.Column


def _constant(tree: exp.Expr) -> str | None:
    """A text, also one that is put together of several."""
    match tree:
        case exp.Literal() if tree.is_string:
            return tree.name
        case exp.Paren():
            return _constant(tree.this)
        case exp.DPipe() | exp.Concat():
            parts = [tree.this, tree.expression] if isinstance(tree, exp.DPipe) else tree.expressions
            found = [_constant(each) for each in parts]
            return None if None in found else "".join(each or "" for each in found)
        case _:
            return None


def _named(name: str, kind: type[exp.Expr]) -> exp.Expr | None:
    try:
        made = sqlglot.parse_one(name, into=kind, dialect=Spark4)
    except SqlglotError:
        return None
    is_plain = isinstance(made, kind) and isinstance(made.this, exp.Identifier)
    return made if is_plain and not made.args.get("alias") else None


def _not_followed(place: Position | None) -> UnsupportedOperator:
    return UnsupportedOperator(
        "what IDENTIFIER(…) names here is not known before Spark computes it",
        position=place,
        hint="write the name itself; a column or a table may also be named as IDENTIFIER('name')",
    )
