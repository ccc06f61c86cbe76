"""The whole tree: every part is known to mean the same, is spelled out, or is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.translate import casts, clauses, dates, lists, numbers, texts
from engine.compile.translate.kinds import Kinds
from engine.compile.translate.plain import CLAUSES, PLAIN
from engine.compile.translate.translating import Rule, Translating
from engine.records import Column, Notice, SqlDialect

#: each is given a node whose parts are in Spark's words already, and gives what takes its place
RULES: dict[type[exp.Expr], Rule] = {
    **clauses.RULES,
    **numbers.RULES,
    **casts.RULES,
    **texts.RULES,
    **dates.RULES,
    **lists.RULES,
}


@dataclass(frozen=True)
class Translation:
    tree: exp.Expr
    notices: tuple[Notice, ...]


def translated(
    tree: exp.Query, text: str, dialect: SqlDialect, relations: Mapping[str, tuple[Column, ...]]
) -> Translation:
    dates.spell_parts(tree)
    context = Translating(text, dialect, Kinds(tree, relations, dialect))
    nodes = list(tree.walk())
    for node in nodes:
        _look_at(context, node)
    root: exp.Expr = tree
    # what is inside comes first
    for node in reversed(nodes):
        rule = RULES.get(type(node))
        if rule is not None:
            made = rule(context, node)
            if made is not node:
                context.kinds.remember(made, context.kind(node))
                node.replace(made)
                root = made if node is root else root
    return Translation(root, tuple(Notice(text) for text in dict.fromkeys(context.notices)))


def _look_at(context: Translating, node: exp.Expr) -> None:
    if type(node) not in PLAIN:
        raise context.refused(node, f"what {_name(node)} becomes in Spark is not known to mean the same")
    known = CLAUSES.get(type(node))
    for name, value in node.args.items() if known is not None else ():
        if value and known is not None and name not in known:
            raise context.refused(node, f"{name.strip('_').replace('_', ' ').upper()} here has no counterpart in Spark")


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name}"
    return f"the function {node.sql_name()}" if isinstance(node, exp.Func) else type(node).__name__.upper()
