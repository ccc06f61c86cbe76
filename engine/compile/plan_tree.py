"""A query as people see it in EXPLAIN: each operator with what maintains it."""

from __future__ import annotations

from engine.algebra.display import describe
from engine.algebra.nodes import Node, Scan
from engine.compile.differentiate import Rule, rule_of
from engine.compile.keep import Kept
from engine.records import Reason
from engine.results import PlanNode

#: the rule of what the way of keeping maintains
KEPT = Rule("kept", "its groups are the stored rows")


def plan_tree(root: Node, kept: Kept) -> PlanNode:
    numbers = iter(range(1, 1_000_000))

    def visit(node: Node) -> PlanNode:
        number = next(numbers)
        label, detail = describe(node)
        if isinstance(node, Scan):
            label, detail = node.leaf.name, ", ".join(source for _, source, _ in node.fields)
        rule = KEPT if node is kept.groups else rule_of(node)
        return PlanNode(f"op{number}", label, detail, rule.name, rule.why, tuple(map(visit, node.inputs)))

    body = visit(root)
    return PlanNode("op0", "Result", ", ".join(kept.identity), kept.rule.name, kept.rule.why, (body,))


def opaque_tree(sources: tuple[str, ...], reason: Reason | None) -> PlanNode:
    sources_read = tuple(
        PlanNode(f"op{index}", name, "", "read whole", "") for index, name in enumerate(sources, start=1)
    )
    return PlanNode("op0", "Result", "", "recompute", reason.text if reason else "", sources_read)
