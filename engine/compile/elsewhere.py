"""What other databases have and Spark has not: the way out for whoever writes it in a query for Spark."""

from __future__ import annotations

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from engine.algebra.dialect import Spark4

_TRANSLATED = "dialect = 'postgres' (or 'duckdb', 'snowflake') has Trickle translate what is written for that database"
_QUANTIFIED = f"Spark has no ANY and ALL of a subquery: say IN, NOT IN, EXISTS, min() or max(); {_TRANSLATED}"
_FETCH = f"Spark has no FETCH: say LIMIT; {_TRANSLATED}"
_DISTINCT_ON = f"Spark has no DISTINCT ON: say QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1; {_TRANSLATED}"
UNREAD = f"Spark's own message says where it stopped reading; {_TRANSLATED}"
_TOP = f"Spark has no TOP: say LIMIT behind ORDER BY; {_TRANSLATED}"


#: UNION ALL (SELECT …) asks for no ALL of a subquery
_BEFORE_ALL = ("UNION", "INTERSECT", "EXCEPT", "MINUS")


def way_out(text: str) -> str | None:
    """The hint for a text that Spark does not take; None where nothing known is in it."""
    tokens = [each for each in sqlglot.tokenize(text, dialect=Spark4) if each.token_type is not TokenType.STRING]
    words = ["", *map(_word, tokens)]
    for before, *three in zip(words, words[1:], words[2:], words[3:], strict=False):
        found = _known(*three) if before not in _BEFORE_ALL else ""
        if found:
            return found
    return None


def _word(token: Token) -> str:
    return str(token.text).upper()


def _known(first: str, second: str, third: str) -> str:
    match first, second, third:
        case "ANY" | "ALL" | "SOME", "(", "SELECT" | "WITH" | "VALUES":
            return _QUANTIFIED
        case "FETCH", "FIRST" | "NEXT", _:
            return _FETCH
        case "DISTINCT", "ON", "(":
            return _DISTINCT_ON
        case "SELECT", "TOP", number if number.isdigit():
            return _TOP
        case _:
            return ""
