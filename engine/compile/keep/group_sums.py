"""Aggregates kept by group with the numbers they are made of: a refresh merges the change's into the stored ones.

Only where that is exact (`composed`). Counts and sums can take back what went: a group whose count of rows reaches zero
is deleted; a negative count is a contradiction. Extremes cannot. Where one stands beside, sources that only grew are
merged all the same, and when rows went, the groups that are touched are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.nodes import Aggregate, Filter, Node, OuterJoin, Output, Project, keep
from engine.algebra.scalars import (
    Scalar,
    all_of,
    any_of,
    col,
    eq,
    gt,
    is_null,
    lit,
    lt,
    ne,
    negation,
    not_null,
    null_safe_eq,
)
from engine.compile.differentiate import Rule, delta, only_grows
from engine.compile.differentiate.aggregate import of_groups, touched_groups
from engine.compile.keep.accumulators import Accumulator, Part
from engine.compile.keep.composed import ROWS, Composed, composed
from engine.compile.keep.grouped import ONE, Grouped, GroupKeys, group_keys, grouped
from engine.compile.keep.kept import Kept, op, stored, stored_name
from engine.compile.keep.replace_groups import WAS, replace_groups, there
from engine.records import Column

STORED_SUMS = "by group, stored sums"


def keep_group_sums(root: Node) -> Kept | None:
    found = grouped(root)
    if found is None or found.having is not None:
        return None
    made = [composed(found.aggregate, each) for each in found.aggregate.aggregations]
    known = tuple(each for each in made if each is not None)
    if len(known) < len(made):
        return None
    kept = _Groups.of(found, known)
    if kept.takes_back:
        return kept.added()
    return kept.merged() if only_grows(found.aggregate.input) else None


@dataclass(frozen=True)
class _Groups:
    found: Grouped
    keys: GroupKeys
    #: one for each aggregation
    composed: tuple[Composed, ...]
    accumulators: tuple[Accumulator, ...]

    @staticmethod
    def of(found: Grouped, made: tuple[Composed, ...]) -> _Groups:
        return _Groups(found, group_keys(found), made, _accumulators(found, made))

    @property
    def aggregate(self) -> Aggregate:
        return self.found.aggregate

    @property
    def takes_back(self) -> bool:
        return all(each.kind.takes_back for each in self.accumulators)

    @property
    def visible(self) -> tuple[Column, ...]:
        return tuple(Column(each.name, each.type) for each in self.found.layers[-1])

    @property
    def hidden(self) -> tuple[Column, ...]:
        made = tuple(Column(each.name, each.type) for each in self.accumulators if each.hidden)
        return self.keys.hidden_columns + made

    # ------------------------------------------------------------ the two ways

    def added(self) -> Kept:
        return Kept(
            rule=Rule(STORED_SUMS, "counts and exact sums change by addition"),
            full=self.of_parts(self.parts()),
            first=None,
            change=self.addition(),
            append=None,
            identity=self.keys.identity,
            visible=self.visible,
            hidden=self.hidden,
            groups=self.aggregate,
        )

    def merged(self) -> Kept:
        whole, (touched, pairs) = self.parts(), touched_groups(self.aggregate)
        after = self.of_parts(of_groups(whole, whole.input, touched, pairs))
        made = zip(self.aggregate.aggregations, self.composed, strict=True)
        lasting = ", ".join(str(each) for each, by in made if not all(part.kind.takes_back for part in by.parts))
        why = f"rows that come are merged with what is stored; when rows go, {lasting} has their groups computed again"
        return Kept(
            rule=Rule("by group, merged or recomputed", why),
            full=self.of_parts(whole),
            first=None,
            change=replace_groups(after, touched, self.keys, self.aggregate, self.visible + self.hidden),
            append=self.merge(),
            identity=self.keys.identity,
            visible=self.visible,
            hidden=self.hidden,
            groups=self.aggregate,
        )

    # ------------------------------------------------------------ the whole result

    def parts(self) -> Aggregate:
        made = tuple(each.computed() for each in self.accumulators)
        return Aggregate(self.aggregate.input, self.aggregate.keys, made)

    def of_parts(self, parts: Node) -> Node:
        """The stored columns, from the groups with their new parts."""
        hidden = tuple(each.kept() for each in self.accumulators if each.hidden)
        return self.found.over(parts, self.finals(), *self.keys.hidden, *hidden)

    def finals(self) -> dict[str, Scalar]:
        """What each aggregation is, by the new parts."""
        values = {each.part: col(each.new_name) for each in self.accumulators}
        made = zip(self.aggregate.aggregations, self.composed, strict=True)
        return {each.name: by.value(values) for each, by in made}

    # ------------------------------------------------------------ its change

    def addition(self) -> Node:
        """What came and went, in one."""
        # the sum of nothing but NULLs is NULL, and no change either
        moved = Filter(self.changed(), any_of(ne(col(each.change_name), lit(0)) for each in self.accumulators))
        joined = OuterJoin(moved, stored(self.stored_columns), self.same_group)
        rows = next(each for each in self.accumulators if each.part == ROWS)
        was = Output("__was", col(stored_name(rows.name)), "bigint")
        summed: Node = Project(joined, (*self.key_outputs, *(each.after() for each in self.accumulators), was))
        counts = [each for each in self.accumulators if each.is_added and each.kind is not each.kind.SUM]
        contradiction = any_of(
            [lt(col(each.new_name), lit(0)) for each in counts]
            + [gt(col(each.new_name), col(rows.new_name)) for each in counts if each is not rows]
        )
        is_new, gone = is_null(col("__was")), eq(col(rows.new_name), lit(0))
        if not self.aggregate.keys:
            return self.change_set(summed, op((any_of((contradiction, is_new)), "X"), otherwise="U"))
        # A group that came and went within the change leaves nothing to do.
        summed = Filter(summed, any_of((ne(col(rows.new_name), lit(0)), not_null(col("__was")))))
        return self.change_set(summed, op((contradiction, "X"), (gone, "D"), (is_new, "I"), otherwise="U"))

    def merge(self) -> Node:
        """When rows only came: no group goes, and none is smaller than it was."""
        joined = OuterJoin(self.changed(), there(self.stored_columns), self.same_group)
        before = keep(tuple(Column(stored_name(each.name), each.type) for each in self.accumulators))
        outputs = (*self.key_outputs, *(each.after() for each in self.accumulators), *before)
        after = Project(joined, (*outputs, Output(WAS, col(WAS), "int")))
        same = all_of(null_safe_eq(col(each.new_name), col(stored_name(each.name))) for each in self.accumulators)
        differs = Filter(after, any_of((is_null(col(WAS)), negation(same))))
        return self.change_set(differs, op((is_null(col(WAS)), "I"), otherwise="U"))

    def changed(self) -> Node:
        """The parts of the change alone, by group."""
        contributions = Project(
            delta(self.aggregate.input), (*self.aggregate.keys, *(each.change() for each in self.accumulators))
        )
        keys = tuple(Output(key.name, col(key.name), key.type) for key in self.aggregate.keys)
        made = Aggregate(contributions, keys, tuple(each.summed() for each in self.accumulators))
        if keys:
            return made
        names = tuple(Output(each.change_name, col(each.change_name), "") for each in self.accumulators)
        return Project(made, (Output(ONE, lit(1), "int"), *names))

    @property
    def key_outputs(self) -> tuple[Output, ...]:
        if not self.aggregate.keys:
            return (Output(ONE, col(ONE), "int"),)
        return tuple(Output(key.name, col(key.name), key.type) for key in self.aggregate.keys)

    @property
    def stored_columns(self) -> tuple[Column, ...]:
        """What the change is merged with: the identity of each group, and its parts."""
        types = [key.type for key in self.key_outputs]
        keys = tuple(Column(name, type_) for name, type_ in zip(self.keys.identity, types, strict=True))
        made = (Column(each.name, each.type) for each in self.accumulators if each.name not in self.keys.identity)
        return keys + tuple(made)

    @property
    def same_group(self) -> tuple[Scalar, ...]:
        pairs = zip(self.key_outputs, self.keys.identity, strict=True)
        return tuple(null_safe_eq(col(key.name), col(stored_name(name))) for key, name in pairs)

    def change_set(self, groups: Node, operation: Output) -> Node:
        hidden = tuple(Output(each.name, col(each.new_name), each.type) for each in self.accumulators if each.hidden)
        made = self.found.over(groups, self.finals(), *self.keys.hidden, *hidden, operation)
        return Project(made.input, (made.outputs[-1], *made.outputs[:-1]))


def _accumulators(found: Grouped, made: tuple[Composed, ...]) -> tuple[Accumulator, ...]:
    """What is stored; a part that the query itself puts out is not stored twice."""
    parts = dict.fromkeys(part for each in made for part in each.parts)
    if all(part.kind.takes_back for part in parts):
        # how many rows a group has says when it goes
        parts = {ROWS: None} | parts
    shown = found.shown
    names: dict[Part, str] = {}
    for each, by in zip(found.aggregate.aggregations, made, strict=True):
        if by.shows is not None and each.name in shown:
            names[by.shows] = shown[each.name]
    return tuple(
        Accumulator(names.get(part) or f"__trickle_{_word(part, number)}", part, hidden=part not in names)
        for number, part in enumerate(parts)
    )


def _word(part: Part, number: int) -> str:
    return "rows" if part == ROWS else f"{part.kind}_{number}"
