"""What all parts of lowering share: the query, the names, Spark's opinion, how a query in a query is lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from engine.algebra.nodes import Aggregate, Empty, Node, Output, Project, UnionAll, Window
from engine.algebra.scalars import Scalar, cast, col
from engine.compile.functions import Function
from engine.compile.parse import Limits, ParsedQuery, ParsedView
from engine.compile.positions import clause_position, fragment, position
from engine.compile.scope import Names, Scope, Visible
from engine.errors import InternalError, Position, UnsupportedOperator
from engine.records import Column

if TYPE_CHECKING:
    from engine.compile.lower.correlation import Outer

#: gives Spark's names and types for what a tree puts out
Typing = Callable[[Node], tuple[Column, ...]]
#: the same for a SELECT of one expression over a tree, which may give several columns
CallTyping = Callable[[Node, Scalar], tuple[Column, ...]]
#: the columns of a source by its folded name
Relations = Mapping[str, tuple[str, tuple[Column, ...]]]


@dataclass(frozen=True)
class Definition:
    """A common table expression together with those that it can see."""

    tree: exp.CTE
    environment: Environment
    #: inside of a recursion: the rows of the round before
    itself: Itself | None = None
    #: the view that it is, whose text is another than the query's
    view: ParsedView | None = None


@dataclass(frozen=True)
class Itself:
    """A recursion, seen from its own step."""

    name: str
    columns: tuple[Column, ...]
    #: as the author calls them
    names: tuple[str, ...]


@dataclass(frozen=True)
class Environment:
    """What a query sees of what is around it."""

    definitions: Mapping[str, Definition] = field(default_factory=dict)
    #: the rows of the query around it that a subquery is evaluated for
    outer: Outer | None = None
    #: is it asked for one value, so that no row is as good as a row of NULL?
    as_value: bool = False

    def with_definition(self, name: str, definition: Definition) -> Environment:
        return replace(self, definitions={**self.definitions, name.casefold(): definition})


@dataclass(frozen=True)
class Source:
    """A FROM clause in the making: rows, and the names that they are known by."""

    node: Node
    scope: Scope
    #: where the rows of the query around it are among them: the columns that tell which
    domain: tuple[str, ...] = ()
    #: expressions over names that are columns of `node` by now, as `alike` has them: keys, aggregates, windows
    known: Mapping[exp.Expr, Scalar] = field(default_factory=dict)
    #: are there groups, so that nothing else can be said of the rows?
    grouped: bool = False


@dataclass(frozen=True)
class Lowered:
    """A query as a tree, with what can be said of it from outside."""

    node: Node
    #: its outputs, in order
    visible: tuple[Visible, ...]
    domain: tuple[str, ...] = ()
    #: has it just one row (for each row of the domain that has any)?
    one_row: bool = False
    #: …or perhaps none?
    at_most_one_row: bool = False
    #: what an output is for rows of the domain that have none, where that is not NULL
    when_missing: Mapping[str, Scalar] = field(default_factory=dict)

    def in_order(self) -> Node:
        """Visible columns first, then those of the domain, and nothing else."""
        names = [*(each.own for each in self.visible), *self.domain]
        if [column.name for column in self.node.columns] == names:
            return self.node
        return Project(self.node, tuple(Output(name, col(name), self.node.types[name]) for name in names))


@dataclass
class Context:
    query: ParsedQuery
    relations: Relations
    typing: Typing
    call_typing: CallTyping
    #: what is known of functions that somebody made, by the name that they are called by
    own_functions: Mapping[str, Function]
    names: Names = field(default_factory=Names)
    #: a clause that says in which order rows come, with its place
    ignored_order: str | None = None
    #: places where the answer is not unique, and has been made so
    made_unique: list[str] = field(default_factory=list)
    #: common table expressions by their tree and what they see of a query around them
    lowered_definitions: dict[tuple[int, int], Lowered] = field(default_factory=dict)
    max_grouping_sets: int = Limits.max_grouping_sets
    #: is only asked what a subquery uses, and the tree thrown away?
    is_rehearsal: bool = False
    lower: Callable[[Context, exp.Expr, Environment], Lowered] = lambda *_: _not_set()

    def rehearsal(self) -> Context:
        """For finding out what a subquery uses: nothing is asked of Spark, and nothing is kept."""
        return replace(
            self,
            names=Names(),
            typing=lambda node: tuple(replace(each, type="") for each in node.columns),
            call_typing=lambda _, __: (Column("col", ""),),
            made_unique=[],
            lowered_definitions={},
            is_rehearsal=True,
        )

    # ---------------------------------------------------------------- types

    def typed(self, node: Project) -> Project:
        """A projection with Spark's types for what it computes. Its input needs not be asked about again."""
        types = node.input.types
        if all(output.scalar.as_column for output in node.outputs):
            return replace(
                node, outputs=tuple(replace(each, type=types[each.scalar.as_column or ""]) for each in node.outputs)
            )
        found = self.typing(Project(_needed(node.input, (each.scalar for each in node.outputs)), node.outputs))
        outputs = tuple(replace(each, type=column.type) for each, column in zip(node.outputs, found, strict=True))
        return replace(node, outputs=outputs)

    def typed_aggregate(self, node: Aggregate) -> Aggregate:
        types = node.input.types
        keys = tuple(replace(key, type=types[key.scalar.as_column or ""]) for key in node.keys)
        if not node.aggregations:
            return replace(node, keys=keys)
        below = _needed(node.input, (each.call for each in node.aggregations))
        found = self.typing(Aggregate(below, (), node.aggregations))
        made = tuple(replace(each, type=column.type) for each, column in zip(node.aggregations, found, strict=True))
        return replace(node, keys=keys, aggregations=made)

    def typed_window(self, node: Window) -> Window:
        below = _needed(node.input, (each.call for each in node.functions), more=node.partition)
        found = self.typing(Window(below, node.partition, node.functions))[len(below.columns) :]
        made = tuple(replace(each, type=column.type) for each, column in zip(node.functions, found, strict=True))
        return replace(node, functions=made)

    def columns_of_call(self, node: Node, call: Scalar) -> tuple[Column, ...]:
        """What a function gives that makes rows."""
        return self.call_typing(_needed(node, (call,)), call)

    def aligned(self, members: tuple[Node, ...]) -> tuple[Node, ...]:
        """The inputs of a union in the types that Spark brings them all to."""
        found = self.typing(UnionAll(tuple(Empty(member.columns) for member in members)))
        return tuple(self.cast_to(member, tuple(column.type for column in found)) for member in members)

    def cast_to(self, node: Node, types: tuple[str, ...]) -> Node:
        if all(column.type == type_ for column, type_ in zip(node.columns, types, strict=True)):
            return node
        return Project(
            node,
            tuple(
                Output(each.name, col(each.name) if each.type == type_ else cast(col(each.name), type_), type_)
                for each, type_ in zip(node.columns, types, strict=True)
            ),
        )

    # ---------------------------------------------------------------- columns

    def renamed(self, node: Node, prefix: str = "") -> tuple[Project, dict[str, str]]:
        """The same rows under names that nothing else in the tree has, and the names by those that they had."""
        names = {each.name: self.names.fresh(prefix, each.name) for each in node.columns}
        return Project(node, tuple(Output(names[c.name], col(c.name), c.type) for c in node.columns)), names

    def project(self, node: Node, outputs: list[tuple[str, Scalar]], domain: tuple[str, ...] = ()) -> Lowered:
        """Outputs under names of their own; a plain column keeps its name where it can."""
        made: list[Output] = []
        taken: set[str] = set(domain)
        for name, scalar in outputs:
            own = scalar.as_column
            if own is None or own in taken:
                own = self.names.fresh("", name or "expr")
            taken.add(own)
            made.append(Output(own, scalar, ""))
        kept = tuple(Output(name, col(name), "") for name in domain)
        visible = tuple(Visible("", name, each.name) for (name, _), each in zip(outputs, made, strict=True))
        return Lowered(self.typed(Project(node, (*made, *kept))), visible, domain)

    # ---------------------------------------------------------------- what is told

    def ignore_order(self, clause: exp.Expr, words: str = "ORDER BY") -> None:
        """A stored table has no order, so without LIMIT it changes nothing."""
        place = self.position(clause)
        self.ignored_order = f"{words} ({place})" if place is not None else words

    # ---------------------------------------------------------------- errors

    def position(self, node: exp.Expr) -> Position | None:
        return position(node, self.query.text)

    def unsupported(self, node: exp.Expr, what: str, detail: str | None = None) -> UnsupportedOperator:
        return UnsupportedOperator(
            f"{what} cannot be maintained differentially",
            detail=detail,
            position=clause_position(node, self.query.text),
            fragment=fragment(node, self.query.text),
            hint="refresh_mode = 'FULL' recomputes it; AUTO does so by itself",
        )

    def place(self, error: UnsupportedOperator, node: exp.Expr) -> None:
        """It is at least somewhere in this query, if nobody knows better."""
        if error.position is None:
            error.position = clause_position(node, self.query.text)
            error.fragment = fragment(node, self.query.text)

    def misread(self, node: exp.Expr, problem: str) -> UnsupportedOperator:
        """What looks like a mistake here is none of the author's: Spark has accepted the query before."""
        return UnsupportedOperator(
            f"Trickle does not read this query as Spark does: {problem}",
            position=self.position(node),
            fragment=fragment(node, self.query.text),
            hint="write it in another way; refresh_mode = 'FULL' recomputes it, AUTO does so by itself",
        )


def _needed(node: Node, scalars: object, more: tuple[str, ...] = ()) -> Empty:
    """A relation with the columns that are read: all that types depend on."""
    read = frozenset(more).union(*(each.columns for each in scalars))  # type: ignore[attr-defined]
    return Empty(tuple(column for column in node.columns if column.name in read))


def _not_set() -> Lowered:
    raise InternalError("lowering is entered by engine.compile.lower.lower")
