"""LIKE ANY (…) and LIKE ALL (…), spelled out: OR and AND of one LIKE for each pattern.

NOT LIKE ANY asks for one pattern that does not fit, and so is not the opposite of LIKE ANY.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.compile.parse import ParsedQuery


def with_patterns_spelled(query: ParsedQuery) -> ParsedQuery:
    views = tuple(replace(view, query=replace(view.query, tree=_spelled(view.query.tree))) for view in query.views)
    return replace(query, tree=_spelled(query.tree), views=views)


def _spelled(tree: exp.Query) -> exp.Query:
    if not any(map(_is_quantified, tree.walk())):
        return tree
    tree = tree.copy()
    for like in [node for node in tree.walk() if _is_quantified(node)]:
        like.replace(_one_by_one(like))
    return tree


def _is_quantified(node: exp.Expr) -> bool:
    return isinstance(node, exp.Like | exp.ILike) and isinstance(node.expression, exp.Any | exp.All)


def _one_by_one(like: exp.Expr) -> exp.Expr:
    patterns = like.expression.this
    each = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns.unnest()]
    likes: list[exp.Expr] = []
    for pattern in each:
        one = like.copy()
        one.set("expression", pattern.copy())
        likes.append(one)
    together = exp.or_ if isinstance(like.expression, exp.Any) else exp.and_
    return exp.paren(together(*likes, copy=False), copy=False)
