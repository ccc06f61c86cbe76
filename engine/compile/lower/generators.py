"""Functions that make rows: LATERAL VIEW, JOIN LATERAL explode(…), explode(…) in the SELECT list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.nodes import Explode
from engine.algebra.scalars import Scalar
from engine.compile import functions
from engine.compile.lower.context import Context, Source
from engine.compile.lower.expressions import over
from engine.compile.scope import Scope, Visible


def is_generator(tree: exp.Expr) -> bool:
    return functions.kind(functions.name_of(tree)) is functions.Kind.GENERATOR


def lateral_views(context: Context, source: Source, laterals: Sequence[exp.Lateral]) -> Source:
    for lateral in laterals:
        if not is_generator(lateral.this):
            raise context.unsupported(lateral, "LATERAL VIEW of this function")
        source = generated(context, source, lateral, outer=bool(lateral.args.get("outer")))
    return source


def generated(context: Context, source: Source, lateral: exp.Lateral | exp.Table, *, outer: bool) -> Source:
    """The source beside the rows that the function makes of each of its rows."""
    alias = lateral.args.get("alias")
    names = [each.name for each in alias.args.get("columns") or []] if alias else []
    made, visible = exploded(context, source, lateral.this, names, alias.name if alias else "", outer=outer)
    return replace(made, scope=source.scope.beside(Scope(visible)))


def exploded(
    context: Context, source: Source, call: exp.Expr, names: Sequence[str], table: str, *, outer: bool
) -> tuple[Source, tuple[Visible, ...]]:
    arguments = call.copy()
    for part in list(arguments.iter_expressions()):
        part.replace(over(context, part, source).tree)
    made = Scalar(arguments)
    found = context.columns_of_call(source.node, made)
    if names and len(names) != len(found) and found[0].type:
        raise context.misread(call, f"{len(names)} names for the {len(found)} columns that this function makes")
    shown = [*names, *(each.name for each in found[len(names) :])]
    fields = tuple(
        replace(each, name=context.names.fresh(table, name), nullable=True)
        for each, name in zip(found, shown, strict=False)
    )
    visible = tuple(Visible(table, name, each.name) for name, each in zip(shown, fields, strict=False))
    return replace(source, node=Explode(source.node, made, fields, outer)), visible
