"""A text that only Spark can read: what it names and what it calls.

Spark knows more SQL than sqlglot does, and will know more tomorrow. Such a query is recomputed, and for that its
sources must be known, and that nothing in it changes by itself. Both are told by its words: every word that is the
name of a relation is taken for one, so that rather too much is watched than too little, and every name before a
parenthesis for a function. What Spark itself thinks of the query is asked besides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
#: behind these a name with a parenthesis is an alias with its columns
_BEFORE_ALIASES = (*_NAMES, TokenType.ALIAS, TokenType.R_PAREN, TokenType.WITH, TokenType.RECURSIVE)


def outlined(tokens: Sequence[Token], relations: Collection[str]) -> exp.Select | None:
    """A query of the same relations and functions; None where no relation is named."""
    known = {name.casefold() for name in relations}
    tables = [_table(token) for before, token in pairwise([None, *tokens]) if token and _names(before, token, known)]
    if not tables:
        return None
    calls = [exp.Anonymous(this=token.text) for token in _called(tokens)]
    return exp.Select(
        expressions=[exp.Star(), *calls],
        from_=exp.From(this=tables[0]),
        joins=[exp.Join(this=table, kind="CROSS") for table in tables[1:]],
    )


def program_in(tokens: Sequence[Token]) -> int | None:
    """Where rows are handed to a program: TRANSFORM, MAP and REDUCE … USING 'command'."""
    following = pairwise(tokens)
    pair = (TokenType.USING, TokenType.STRING)
    return next((one.start for one, other in following if (one.token_type, other.token_type) == pair), None)


def _names(before: Token | None, token: Token, known: Collection[str]) -> bool:
    """Behind a dot is a column, or a table of a schema."""
    if before is not None and before.token_type is TokenType.DOT:
        return False
    return token.token_type is not TokenType.STRING and token.text.casefold() in known


def _table(token: Token) -> exp.Table:
    name = exp.to_identifier(token.text, quoted=True)
    name.update_positions(token)
    return exp.Table(this=name)


def _called(tokens: Sequence[Token]) -> Iterator[Token]:
    for place, token in enumerate(tokens[:-1]):
        before = tokens[place - 1].token_type if place else None
        if (
            token.token_type in _NAMES
            and tokens[place + 1].token_type is TokenType.L_PAREN
            and before not in _BEFORE_ALIASES
        ):
            yield token
