"""One printer for every tree: explain, golden files and debugging read the same text."""

from __future__ import annotations

from functools import singledispatch

from engine.algebra.nodes import (
    Aggregate,
    Empty,
    Exists,
    Explode,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Project,
    Recursion,
    Repeat,
    Role,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
)
from engine.algebra.scalars import Scalar


@singledispatch
def describe(node: Node) -> tuple[str, str]:
    """(what it is, its particulars) of one operator."""
    raise TypeError(f"no description for {type(node).__name__}")


@describe.register
def _(node: Scan) -> tuple[str, str]:
    names = ", ".join(name if name == source else f"{source} AS {name}" for name, source, _ in node.fields)
    label = "Δ " + node.leaf.name if node.leaf.role is Role.DELTA else f"Scan {node.leaf}"
    return label, f"[{names}]"


@describe.register
def _(node: Filter) -> tuple[str, str]:
    return "Filter", str(node.predicate)


@describe.register
def _(node: Project) -> tuple[str, str]:
    return "Project", ", ".join(map(str, node.outputs))


@describe.register
def _(node: InnerJoin) -> tuple[str, str]:
    return ("Join inner" if node.conditions else "Join cross"), _conditions(node.conditions)


@describe.register
def _(node: Aggregate) -> tuple[str, str]:
    keys = ", ".join(map(str, node.keys)) or "()"
    made = ", ".join(f"{each} AS {each.name}" for each in node.aggregations)
    return ("Aggregate", f"{keys} → {made}") if made else ("Distinct", keys)


@describe.register
def _(node: Empty) -> tuple[str, str]:
    return "Empty", ""


@describe.register
def _(node: UnionAll) -> tuple[str, str]:
    return "Union all", ""


@describe.register
def _(node: Values) -> tuple[str, str]:
    rows = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in node.rows)
    return ("Values", rows) if node.fields else ("One row", "")


@describe.register
def _(node: OuterJoin) -> tuple[str, str]:
    return ("Join full" if node.full else "Join left"), _conditions(node.conditions)


@describe.register
def _(node: Exists) -> tuple[str, str]:
    return ("Has no partner" if node.negated else "Has a partner"), _conditions(node.conditions)


@describe.register
def _(node: SemiJoin) -> tuple[str, str]:
    return "Touched keys", ", ".join(f"{scalar} = {name}" for scalar, name in node.pairs)


@describe.register
def _(node: Window) -> tuple[str, str]:
    return "Window", ", ".join(f"{each.call} AS {each.name}" for each in node.functions)


@describe.register
def _(node: Recursion) -> tuple[str, str]:
    return "Recursion", f"{node.name}({', '.join(node.inner_names)})"


@describe.register
def _(node: Explode) -> tuple[str, str]:
    names = ", ".join(field.name for field in node.fields)
    return ("Explode outer" if node.outer else "Explode"), f"{node.call} → {names}"


@describe.register
def _(node: Repeat) -> tuple[str, str]:
    return "Repeat", f"{node.times} times"


def _conditions(conditions: tuple[Scalar, ...]) -> str:
    return " AND ".join(map(str, conditions))


def show(root: Node) -> str:
    """The tree as indented text; a subtree that is used twice is printed once and named."""
    seen: dict[int, int] = {}
    counts: dict[int, int] = {}

    def count(node: Node) -> None:
        counts[id(node)] = counts.get(id(node), 0) + 1
        if counts[id(node)] == 1:
            for child in node.inputs:
                count(child)

    count(root)
    lines: list[str] = []

    def visit(node: Node, depth: int) -> None:
        shared = counts[id(node)] > 1 and not isinstance(node, Scan)
        if id(node) in seen:
            lines.append("  " * depth + f"(as #{seen[id(node)]})")
            return
        mark = ""
        if shared:
            seen[id(node)] = len(seen) + 1
            mark = f"#{seen[id(node)]} "
        label, detail = describe(node)
        lines.append("  " * depth + f"{mark}{label} {detail}".rstrip())
        for child in node.inputs:
            visit(child, depth + 1)

    visit(root, 0)
    return "\n".join(lines)
