"""Text to syntax tree, with guards, positions and the names of the sources.

Spark is asked separately whether the query means anything; here it is only made sure that it is one SELECT of
bounded size, and that what sqlglot understood can be pointed at.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from engine.compile import functions
from engine.compile.dialect import Spark4
from engine.compile.positions import position
from engine.errors import NotFound, Position, QueryParseError, QueryTooComplex, VolatileFunction

_UNKNOWN = functions.Kind.UNKNOWN


@dataclass(frozen=True)
class Limits:
    max_depth: int = 64
    max_nodes: int = 100_000


@dataclass(frozen=True)
class ParsedQuery:
    text: str
    tree: exp.Query
    #: names of the relations it reads, as written first, in order of appearance
    sources: tuple[str, ...]

    @property
    def functions(self) -> tuple[str, ...]:
        """Those that are none of Spark's own: somebody defined them, and may define them anew."""
        return tuple(sorted({name for _, name in functions.calls(self.tree) if functions.kind(name) is _UNKNOWN}))

    def rendered(self, pretty: bool = False) -> str:
        """The query as sqlglot understood it; Spark must find that it means the same as `text`."""
        return self.tree.sql(dialect=Spark4, pretty=pretty)


def parse(text: str, limits: Limits | None = None) -> ParsedQuery:
    limits = limits or Limits()
    try:
        statements = [each for each in sqlglot.parse(text, dialect=Spark4) if each is not None]
    except RecursionError:
        raise _too_deep(limits) from None
    except SqlglotError as error:
        raise _parse_error(text, error) from None
    if not statements:
        raise QueryParseError("the query is empty", hint="write a SELECT")
    if len(statements) > 1:
        raise QueryParseError(
            f"{len(statements)} statements where one SELECT belongs", hint="remove what follows the first `;`"
        )
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        raise QueryParseError(
            f"a stream table is defined by a SELECT, not by {type(tree).__name__.upper()}",
            position=position(tree, text),
            hint="start with SELECT or WITH",
        )
    _guard(tree, limits)
    _refuse_volatile(tree, text)
    return ParsedQuery(text, tree, _sources(tree))


def unknown_relation(name: str, known: Iterable[str], where: Position | None) -> NotFound:
    near = difflib.get_close_matches(name, list(known), n=1)
    return NotFound(
        f"there is no source or stream table named {name}",
        position=where,
        hint=f"did you mean {near[0]}?" if near else "`trickle source add NAME --path PATH` makes one known",
    )


def same_words(one: str, other: str) -> bool:
    """Do two texts differ in nothing but blanks, comments, the case of what is no string, and AS before an alias?"""

    def words(text: str) -> list[str]:
        tokens = sqlglot.tokenize(text, dialect=Spark4)
        return [
            repr(token.text) if token.token_type is TokenType.STRING else token.text.upper()
            for token in tokens
            if token.token_type is not TokenType.ALIAS
        ]

    return words(one) == words(other)


def table_positions(query: ParsedQuery) -> dict[str, Position | None]:
    """Where each source is named first, by folded name."""
    found: dict[str, Position | None] = {}
    for table in query.tree.find_all(exp.Table):
        found.setdefault(table.name.casefold(), position(table, query.text))
    return found


def _sources(tree: exp.Query) -> tuple[str, ...]:
    """Relations that are not common table expressions visible where they are named."""
    found: dict[str, str] = {}
    # Breadth does not follow the text; the offset does.
    tables = sorted(tree.find_all(exp.Table), key=lambda table: table.this.meta.get("start", 0))
    for table in tables:
        if table.name and not _is_cte(table):
            found.setdefault(table.name.casefold(), table.name)
    return tuple(found.values())


def _is_cte(table: exp.Table) -> bool:
    name = table.name.casefold()
    scope: exp.Expr | None = table.parent
    inner: exp.Expr = table
    while scope is not None:
        with_ = scope.args.get("with_")
        if with_ is not None and with_ is not inner:
            if any(cte.alias.casefold() == name for cte in with_.expressions):
                return True
        elif isinstance(scope, exp.With):
            # Inside the list, only what stands before is visible, and oneself if it is recursive.
            itself = 1 if scope.args.get("recursive") else 0
            earlier = scope.expressions[: _index(scope.expressions, inner) + itself]
            if any(cte.alias.casefold() == name for cte in earlier):
                return True
            inner, scope = scope, scope.parent
            if scope is not None:
                inner, scope = scope, scope.parent
            continue
        inner, scope = scope, scope.parent
    return False


def _index(expressions: list[exp.Expr], wanted: exp.Expr) -> int:
    return next(index for index, each in enumerate(expressions) if each is wanted)


def _guard(tree: exp.Expr, limits: Limits) -> None:
    level, nodes, depth = [tree], 0, 0
    while level:
        depth += 1
        nodes += len(level)
        if nodes > limits.max_nodes:
            raise QueryTooComplex(
                f"the query has more than {limits.max_nodes:,} parts", hint="raise compile.max_parse_nodes"
            )
        if depth > limits.max_depth:
            raise _too_deep(limits)
        level = [child for node in level for child in node.iter_expressions()]


def _too_deep(limits: Limits) -> QueryTooComplex:
    return QueryTooComplex(
        f"the query is nested more than {limits.max_depth} levels deep", hint="raise compile.max_parse_depth"
    )


def _refuse_volatile(tree: exp.Expr, text: str) -> None:
    for call in tree.find_all(exp.Func):
        name = functions.name_of(call)
        if functions.is_forbidden(name):
            raise VolatileFunction(
                f"{name} runs code outside the query and is never allowed in a stream table",
                position=position(call, text),
                hint="compute its value in the source",
            )


def _parse_error(text: str, error: SqlglotError) -> QueryParseError:
    details = getattr(error, "errors", None)
    if not details:
        return QueryParseError("this is not SQL that Spark understands", detail=str(error).splitlines()[0])
    first = details[0]
    near = (first.get("highlight") or "").strip()
    line, column = first.get("line"), first.get("col")
    # sqlglot points at the end of the offending token.
    where = Position(line, max(1, column - len(near) + 1)) if line and column else None
    return QueryParseError(
        f"syntax error near {near!r}" if near else "syntax error at the end",
        detail=first.get("description"),
        position=where,
        hint="check the words just before this place",
    )
