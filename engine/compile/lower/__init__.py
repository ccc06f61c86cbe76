"""Syntax tree to algebra, in canonical form.

Canonical means: each column has one name in the whole tree; inner joins are flat; arguments of aggregates and windows
are plain columns, computed by a projection below; subqueries are joins; ties are broken, so that there is one answer;
names of outputs and all types are Spark's own. What has no place in the algebra ends in `UnsupportedOperator`, with
the place in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from sqlglot import exp

from engine.algebra.nodes import Node, Output, Project
from engine.algebra.scalars import col
from engine.compile.functions import Function, Kind, calls
from engine.compile.lower.context import CallTyping, Context, Definition, Environment, Lowered, Relations, Typing
from engine.compile.lower.correlation import NUMBER
from engine.compile.lower.expressions import OWN_AGGREGATE, refuse_odd_call
from engine.compile.lower.parts import refuse_unknown_parts
from engine.compile.lower.patterns import with_patterns_spelled
from engine.compile.lower.queries import lower_query
from engine.compile.parse import Limits, ParsedQuery, in_each_text


def lower(
    query: ParsedQuery,
    relations: Relations,
    typing: Typing,
    call_typing: CallTyping,
    own_functions: Mapping[str, Function],
    max_grouping_sets: int = Limits.max_grouping_sets,
) -> tuple[Lowered, Context]:
    """The canonical tree of a query, and what was noticed on the way. Its columns still have their internal names.

    What its functions may do has been ruled on before: what changes by itself is taken for what it is at one moment.
    """
    query = with_patterns_spelled(query)
    for number, node in enumerate(chain.from_iterable(each.tree.walk() for each in query.texts)):
        node.meta[NUMBER] = number
    context = Context(
        query, relations, typing, call_typing, own_functions, max_grouping_sets=max_grouping_sets, lower=lower_query
    )
    in_each_text(query, lambda each: _look_through(replace(context, query=each)))
    return lower_query(context, query.tree, _with_views(query)), context


def _look_through(context: Context) -> None:
    refuse_unknown_parts(context, context.query.tree)
    _mark_own_aggregates(context)


def _mark_own_aggregates(context: Context) -> None:
    for call, name in calls(context.query.tree):
        own = context.own_functions.get(name)
        if own is not None and own.kind is Kind.AGGREGATE:
            refuse_odd_call(context, call)
            call.meta[OWN_AGGREGATE] = True


def _with_views(query: ParsedQuery) -> Environment:
    """Views are what a WITH around everything would define: each sees those before it, and nothing of the query."""
    environment = Environment()
    for view in query.views:
        named = exp.TableAlias(this=exp.to_identifier(view.name))
        definition = Definition(exp.CTE(this=view.query.tree, alias=named), environment, view=view)
        environment = environment.with_definition(view.name, definition)
    return environment


def rename_outputs(lowered: Lowered, names: Sequence[str], types: Sequence[str]) -> Project:
    """The last step: outputs under the names and types that Spark gives the query."""
    renamed = tuple(
        Output(name, col(each.own), type_) for each, name, type_ in zip(lowered.visible, names, types, strict=True)
    )
    root: Node = lowered.node
    if isinstance(root, Project):
        by_name = {output.name: output.scalar for output in root.outputs}
        return Project(root.input, tuple(replace(each, scalar=each.scalar.substitute(by_name)) for each in renamed))
    return Project(root, renamed)


__all__ = ["CallTyping", "Context", "Lowered", "Relations", "Typing", "lower", "rename_outputs"]
