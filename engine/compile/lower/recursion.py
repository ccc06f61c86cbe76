"""WITH RECURSIVE: what a query finds of its own findings, until it finds no more."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.algebra.dialect import MAX_LEVEL
from engine.algebra.nodes import Aggregate, Exists, Leaf, Node, OuterJoin, Recursion, Repeat, Role, Scan, Window
from engine.algebra.trees import nodes_of
from engine.compile.lower.context import Context, Definition, Itself, Lowered
from engine.compile.scope import Visible
from engine.records import Column


def lower_recursive(context: Context, definition: Definition) -> Lowered:
    cte = definition.tree
    union = cte.this
    if not isinstance(union, exp.Union):
        raise context.unsupported(cte, "a recursive WITH that is not a UNION")
    if union.args.get("distinct") or union.args.get("limit") or union.args.get("order"):
        raise context.unsupported(union, "a recursive WITH by anything but UNION ALL")
    # Spark lets no recursion speak of a query around it.
    alone = replace(definition.environment, outer=None)
    base = context.lower(context, union.left, alone)
    given = [each.name for each in cte.args["alias"].args.get("columns") or []]
    names = [*given, *(each.name for each in base.visible[len(given) :])]
    types = base.node.types
    columns = tuple(
        Column(context.names.fresh(cte.alias, name), types[each.own])
        for name, each in zip(names, base.visible, strict=True)
    )
    name = context.names.fresh("recursive", cte.alias)
    itself = Itself(name, columns, tuple(names))
    step = context.lower(context, union.right, alone.with_definition(cte.alias, Definition(cte, alone, itself)))
    if len(step.visible) != len(columns) or not _is_linear(step.node, name):
        raise context.unsupported(union.right, "what a recursive WITH does with its own rows")
    # what is found has the types of what it begins with
    wanted = tuple(column.type for column in columns)
    made = context.cast_to(step.in_order(), wanted)
    level = cte.args["alias"].meta.get(MAX_LEVEL)
    found = Recursion(name, base.in_order(), made, tuple(c.name for c in columns), level)
    root, renamed = context.renamed(found)
    visible = tuple(Visible("", each, renamed[old.own]) for each, old in zip(names, base.visible, strict=True))
    return Lowered(root, visible)


def _is_linear(step: Node, name: str) -> bool:
    """Spark lets a round grow row by row only; EXCEPT counts, which the text does not say but its tree does."""
    itself = {id(node) for node in nodes_of(step) if isinstance(node, Scan) and node.leaf.name == name}
    for node in nodes_of(step):
        below = [each for each in node.inputs if id(each) in itself]
        if below and isinstance(node, Aggregate | Window | Recursion | Repeat):
            return False
        if isinstance(node, OuterJoin) and (node.full or id(node.right) in itself) and below:
            return False
        if isinstance(node, Exists) and id(node.other) in itself:
            return False
        if below:
            itself.add(id(node))
    return True


def lower_itself(context: Context, itself: Itself) -> Lowered:
    """The rows of the round before."""
    fields = tuple((context.names.fresh(itself.name, each.name), each.name, each.type) for each in itself.columns)
    visible = tuple(Visible("", name, own) for name, (own, _, _) in zip(itself.names, fields, strict=True))
    return Lowered(Scan(Leaf(Role.ITSELF, itself.name), fields), visible)
