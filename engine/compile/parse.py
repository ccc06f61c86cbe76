"""Text to syntax tree, with guards, positions and the names of the sources.

Spark is asked separately whether the query means anything; here it is only made sure that it is one SELECT of
bounded size, and that what sqlglot understood can be pointed at.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.algebra.copies import copied
from engine.algebra.dialect import Spark4
from engine.compile import functions
from engine.compile.identifiers import refuse_identifiers, spell_identifiers
from engine.compile.outline import outlined, program_in
from engine.compile.positions import clause_position, offset_of, position, position_at
from engine.compile.tokens import tokenize
from engine.config.table import CompileSettings
from engine.errors import (
    CycleDetected,
    NotFound,
    Position,
    QueryParseError,
    QueryTooComplex,
    TrickleError,
    VolatileFunction,
)
from engine.records import View

_UNKNOWN = functions.Kind.UNKNOWN
#: what sqlglot calls its own parts
_CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")
_TOKEN = re.compile(r" but got <Token .*>")
#: how a message tells that it is about a view's text, and no longer about the query's
IN_THE_VIEW = "(in the view "
#: of Jinja
_TEMPLATE_MARKS = ("{{", "{%", "{#")


@dataclass(frozen=True)
class Limits:
    max_depth: int = 64
    max_nodes: int = 100_000
    #: of one GROUP BY
    max_grouping_sets: int = 64

    @staticmethod
    def of(settings: CompileSettings) -> Limits:
        return Limits(settings.max_parse_depth, settings.max_parse_nodes, settings.max_grouping_sets)


@dataclass(frozen=True)
class ParsedQuery:
    text: str
    tree: exp.Query
    #: names of relations and views in its own text, as written first, in order of appearance
    named: tuple[str, ...]
    #: the views that it reads, also through others: each behind those that it reads itself
    views: tuple[ParsedView, ...] = ()
    #: the tree with its hints, which say how to compute and not what; None where it has none
    hinted: exp.Query | None = None
    #: why it cannot be read, where only Spark may be able to: the tree is an outline then
    unread: QueryParseError | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the relations that it reads, through views too."""
        views = {view.name.casefold(): view for view in self.views}
        found: dict[str, str] = {}
        for name in self.named:
            view = views.get(name.casefold())
            for each in (name,) if view is None else view.query.sources:
                found.setdefault(each.casefold(), each)
        return tuple(found.values())

    @property
    def texts(self) -> tuple[ParsedQuery, ...]:
        """Itself and the views, each as it is written; views first."""
        return (*(view.query for view in self.views), self)

    @property
    def functions(self) -> tuple[str, ...]:
        """Those that are none of Spark's own: somebody defined them, and may define them anew."""
        called = (name for each in self.texts for _, name in functions.calls(each.tree))
        return tuple(sorted({name for name in called if functions.kind(name) is _UNKNOWN}))

    def rendered(self, pretty: bool = False) -> str:
        """The query as sqlglot understood it; Spark must find that it means the same as `text`."""
        if self.unread is not None:
            return self.text
        return copied(self.hinted or self.tree).sql(dialect=Spark4, pretty=pretty, copy=False)

    @property
    def hints(self) -> tuple[str, ...]:
        """Those of its own text."""
        found = self.hinted.find_all(exp.Hint) if self.hinted is not None else ()
        return tuple(each.sql(dialect=Spark4) for hint in found for each in hint.expressions)


@dataclass(frozen=True)
class ParsedView:
    name: str
    query: ParsedQuery


def parse(
    text: str, limits: Limits | None = None, views: Iterable[View] = (), relations: Collection[str] = ()
) -> ParsedQuery:
    """The query together with the texts of the views that it reads; `views` and `relations` are all there are."""
    limits = limits or Limits()
    known = {view.name.casefold(): view for view in views}
    reader = _Reader(limits, known, relations)
    parsed = reader.query(text, ())
    if _size(parsed) > limits.max_nodes:
        raise _too_large(limits)
    return parsed


def _size(query: ParsedQuery) -> int:
    """In nodes, with a view as often as it is named."""
    sizes: dict[str, int] = {}

    def size(tree: exp.Expr) -> int:
        named = (node.name.casefold() if isinstance(node, exp.Table) else "" for node in tree.walk())
        return sum(1 + sizes.get(name, 0) for name in named)

    for view in query.views:
        sizes[view.name.casefold()] = size(view.query.tree)
    return size(query.tree)


@dataclass(frozen=True)
class _Reader:
    limits: Limits
    #: by folded name
    known: Mapping[str, View]
    relations: Collection[str]
    #: each view once, behind those that it reads
    found: dict[str, ParsedView] = field(default_factory=dict)

    def query(self, text: str, inside: tuple[str, ...]) -> ParsedQuery:
        """`inside`: the views that lead here."""
        alone = _parse_alone(text, self.limits, lambda: (*self.relations, *self.known))
        used: dict[str, ParsedView] = {}
        for name in alone.named:
            folded = name.casefold()
            if folded in self.known:
                view = self._view(self.known[folded], alone, inside)
                used |= {each.name.casefold(): each for each in (*view.query.views, view)}
        return replace(alone, views=tuple(used.values()))

    def _view(self, view: View, named_by: ParsedQuery, inside: tuple[str, ...]) -> ParsedView:
        place = place_of(named_by, view.name)
        if view.name in inside:
            around = " → ".join((*inside[inside.index(view.name) :], view.name))
            raise CycleDetected(f"the view {view.name} would read itself", detail=around, position=place)
        if len(inside) >= self.limits.max_depth:
            raise _too_deep(self.limits)
        folded = view.name.casefold()
        if folded not in self.found:
            with naming_the_view(view.name, place):
                query = self.query(view.query, (*inside, view.name))
            self.found[folded] = ParsedView(view.name, query)
        return self.found[folded]


@contextmanager
def naming_the_view(name: str, place: Position | None) -> Iterator[None]:
    """Errors inside a view's text tell its name, and point to where the text around names it."""
    try:
        yield
    except TrickleError as error:
        within = f", {error.position}" if error.position is not None else ""
        error.message = f"{error.message} {IN_THE_VIEW}{name}{within})"
        error.args = (error.message,)
        error.position = place
        raise


def in_each_text(query: ParsedQuery, do: Callable[[ParsedQuery], None]) -> None:
    """For the views that it reads, whose errors name them, and for itself."""
    for view in query.views:
        with naming_the_view(view.name, place_of(query, view.name)):
            do(view.query)
    do(query)


def place_of(query: ParsedQuery, name: str) -> Position | None:
    """Where a relation is named first in a query's own text, or else the view that leads to it."""
    places, folded = table_positions(query), name.casefold()
    if folded in places:
        return places[folded]
    leading = (v for v in query.views if folded in {each.name.casefold() for each in v.query.views})
    return next((places[v.name.casefold()] for v in leading if v.name.casefold() in places), None)


def _parse_alone(text: str, limits: Limits, names: Callable[[], Collection[str]]) -> ParsedQuery:
    """`names` of relations and views are asked for only where the text cannot be read."""
    try:
        statements = [each for each in sqlglot.parse(text, dialect=Spark4) if says_anything(each)]
    except RecursionError:
        raise _too_deep(limits) from None
    except SqlglotError as error:
        unread = _template(text) or parse_error(text, error)
        if _stops_early(text, unread):
            raise unread from None
        return _outline(text, limits, names(), unread)
    if not statements:
        raise QueryParseError("the query is empty", hint="write a SELECT")
    if len(statements) > 1:
        raise QueryParseError(
            f"{len(statements)} statements where one SELECT belongs",
            position=clause_position(statements[1], text),
            hint="remove what follows the first `;`",
        )
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        raise QueryParseError(
            f"a stream table is defined by a SELECT, not by {text.split()[0].upper()}",
            position=position_at(text, len(text) - len(text.lstrip())),
            hint="start with SELECT or WITH",
        )
    guard(tree, text, limits)
    _refuse_volatile(tree, text)
    spell_pipes(tree)
    spell_identifiers(tree, text)
    hinted = tree if tree.find(exp.Hint) is not None else None
    if hinted is not None:
        tree = copied(hinted)
        for hint in list(tree.find_all(exp.Hint)):
            hint.pop()
    return ParsedQuery(text, tree, _sources(tree), hinted=hinted)


def says_anything(statement: exp.Expr | None) -> TypeGuard[exp.Expr]:
    """A comment behind the last `;` does not."""
    return statement is not None and not isinstance(statement, exp.Semicolon)


def spell_pipes(tree: exp.Expr) -> None:
    """sqlglot leaves bare names for what `|> AS t` and `|> AGGREGATE … GROUP BY x` take up."""
    for clause in tree.find_all(exp.From):
        if isinstance(clause.this, exp.TableAlias):
            clause.set("this", exp.Table(this=clause.this.this))
    for group in tree.find_all(exp.Group):
        for key in group.expressions:
            if isinstance(key, exp.Identifier):
                key.replace(exp.Column(this=key.copy()))


def _template(text: str) -> QueryParseError | None:
    """What dbt and its kin fill in before anybody reads it as SQL."""
    place = next((found for mark in _TEMPLATE_MARKS if (found := text.find(mark)) >= 0), None)
    if place is None:
        return None
    return QueryParseError(
        f"{text[place : place + 2]} belongs to a template, and is no SQL",
        position=position_at(text, place),
        hint="create the stream table with the text that the template becomes (dbt: `dbt compile`)",
    )


def _stops_early(text: str, unread: QueryParseError) -> bool:
    """In `FROM t WHERE` Spark takes the last word for an alias. Nobody means that."""
    if unread.position is None:
        return False
    return len(text[offset_of(unread.position, text) :].strip().rstrip(";").split()) <= 1


def _outline(text: str, limits: Limits, names: Collection[str], unread: QueryParseError) -> ParsedQuery:
    try:
        tokens = Spark4().tokenize(text)
    except SqlglotError:
        raise unread from None
    refuse_identifiers(tokens, text)
    tree, script = outlined(tokens, names), program_in(tokens)
    if script is not None:
        raise _runs_a_program(position_at(text, script))
    if tree is None:
        raise unread
    guard(tree, text, limits)
    _refuse_volatile(tree, text)
    return ParsedQuery(text, tree, _sources(tree), unread=unread)


def unknown_relation(name: str, known: Iterable[str], where: Position | None) -> NotFound:
    near = difflib.get_close_matches(name.rpartition(".")[2], list(known), n=1)
    return NotFound(
        f"there is no source, view or stream table named {name}",
        position=where,
        hint=f"did you mean {near[0]}?" if near else "`trickle source add NAME --path PATH` makes one known",
    )


def table_positions(query: ParsedQuery) -> dict[str, Position | None]:
    """Where each source is named first, by folded name."""
    found: dict[str, Position | None] = {}
    for table in query.tree.find_all(exp.Table):
        found.setdefault(_full_name(table).casefold(), position(table, query.text))
    return found


def _sources(tree: exp.Query) -> tuple[str, ...]:
    """Relations that are not common table expressions visible where they are named."""
    found: dict[str, str] = {}
    # Breadth does not follow the text; the offset does.
    tables = sorted(tree.find_all(exp.Table), key=lambda table: table.this.meta.get("start", 0))
    for table in tables:
        if table.name and cte_of(table) is None:
            found.setdefault(_full_name(table).casefold(), _full_name(table))
    return tuple(found.values())


def _full_name(table: exp.Table) -> str:
    """With catalog and schema, where they are written: such a table is another one than the source of its last name."""
    return ".".join(part.name for part in table.parts)


def cte_of(table: exp.Table) -> exp.CTE | None:
    """The common table expression that a name in FROM means, where it means one."""
    if table.db:
        return None
    scope: exp.Expr | None = table.parent
    inner: exp.Expr = table
    while scope is not None:
        with_ = scope.args.get("with_")
        if with_ is not None and with_ is not inner:
            visible = with_.expressions
        elif isinstance(scope, exp.With):
            # Inside the list, only what stands before is visible, and oneself if it is recursive.
            itself = 1 if scope.args.get("recursive") else 0
            visible = scope.expressions[: _index(scope.expressions, inner) + itself]
            inner = scope
            scope = scope.parent
        else:
            visible = []
        found = next((cte for cte in reversed(visible) if cte.alias.casefold() == table.name.casefold()), None)
        if found is not None or scope is None:
            return found
        inner, scope = scope, scope.parent
    return None


def names_itself(cte: exp.CTE) -> bool:
    return any(cte_of(table) is cte for table in cte.this.find_all(exp.Table))


def _index(expressions: list[exp.Expr], wanted: exp.Expr) -> int:
    return next(index for index, each in enumerate(expressions) if each is wanted)


def guard(tree: exp.Expr, text: str, limits: Limits) -> None:
    level, nodes, depth = [tree], 0, 0
    while level:
        depth += 1
        if depth > limits.max_depth:
            raise _too_deep(limits, _first_place(level, text))
        below: list[exp.Expr] = []
        for node in level:
            nodes += 1
            if nodes > limits.max_nodes:
                raise _too_large(limits, _first_place(level, text))
            # a OR b OR c stands in a row, although the tree goes down a step for each
            in_row = isinstance(node, exp.Binary | exp.SetOperation)
            for child in node.iter_expressions():
                (level if in_row and type(child) is type(node) else below).append(child)
        level = below


def _first_place(nodes: Iterable[exp.Expr], text: str) -> Position | None:
    return next((place for node in nodes if (place := position(node, text)) is not None), None)


def _too_large(limits: Limits, where: Position | None = None) -> QueryTooComplex:
    return QueryTooComplex(
        f"the query has more than {limits.max_nodes:,} parts", position=where, hint="raise compile.max_parse_nodes"
    )


def _too_deep(limits: Limits, where: Position | None = None) -> QueryTooComplex:
    return QueryTooComplex(
        f"the query is nested more than {limits.max_depth} levels deep",
        position=where,
        hint="raise compile.max_parse_depth",
    )


def _refuse_volatile(tree: exp.Expr, text: str) -> None:
    script = tree.find(exp.QueryTransform)
    if script is not None:
        raise _runs_a_program(position(script, text))
    for call in tree.find_all(exp.Func):
        name = functions.name_of(call)
        if functions.is_forbidden(name):
            raise VolatileFunction(
                f"{name} runs code outside the query and is never allowed in a stream table",
                position=position(call, text),
                hint="compute its value in the source",
            )


def _runs_a_program(where: Position | None) -> VolatileFunction:
    return VolatileFunction(
        "TRANSFORM … USING runs a program outside the query and is never allowed in a stream table",
        position=where,
        hint="compute its value in the source",
    )


def parse_error(text: str, error: SqlglotError, dialect: str = "Spark") -> QueryParseError:
    details = getattr(error, "errors", None)
    if not details:
        try:
            tokenize(text)  # tells the place
        except QueryParseError as unclosed:
            return unclosed
        return QueryParseError(f"this is not SQL that {dialect} understands", detail=str(error).splitlines()[0])
    first = details[0]
    near = (first.get("highlight") or "").strip()
    line, column = first.get("line"), first.get("col")
    # sqlglot points at the end of the offending token.
    where = Position(line, max(1, column - len(near) + 1)) if line and column else None
    return QueryParseError(
        f"syntax error near {near!r}" if near else "syntax error at the end",
        detail=_in_words(first.get("description") or ""),
        position=where,
        hint="check the words just before this place",
    )


def _in_words(description: str) -> str | None:
    return _TOKEN.sub("", _CLASS.sub(lambda found: found[1].upper(), description)) or None
