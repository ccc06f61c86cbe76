"""The parts of a query that are looked at below this folder.

What the parser finds and nobody looks at would be left out in silence, and the view would show other rows than its
query. So whatever is not named here is refused.
"""

from __future__ import annotations

from sqlglot import exp

from engine.compile.lower.context import Context

_ORDERED = ("order", "limit", "offset")
_QUERY = ("with_", *_ORDERED)

#: what else there may be of a part is refused
KNOWN: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(names)
    for kind, names in {
        exp.Select: (
            *_QUERY, "expressions", "distinct", "from_", "joins", "laterals", "where", "group", "having", "qualify",
            "windows", "hint", "sort", "cluster", "distribute",
        ),
        exp.SetOperation: (*_QUERY, "this", "expression", "distinct", "by_name"),
        exp.Subquery: (*_QUERY, "this", "alias", "joins", "pivots", "sample"),
        exp.Values: ("expressions", "alias"),
        exp.With: ("expressions", "recursive"),
        exp.CTE: ("this", "alias"),
        exp.Table: ("this", "alias", "db", "catalog", "joins", "pivots", "sample", "version", "when", "hints"),
        exp.TableAlias: ("this", "columns"),
        exp.Join: ("this", "on", "side", "kind", "using", "method"),
        exp.Lateral: ("this", "view", "outer", "alias"),
        exp.Group: ("expressions", "grouping_sets", "cube", "rollup", "all"),
        exp.Order: ("this", "expressions"),
        exp.Ordered: ("this", "desc", "nulls_first"),
        exp.Limit: ("expression",),
        exp.Offset: ("expression",),
        exp.Distinct: ("expressions",),
        exp.Window: ("this", "partition_by", "order", "spec", "alias", "over"),
        exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
        exp.In: ("this", "expressions", "query"),
        exp.Star: ("except_", "replace", "rename"),
    }.items()
}  # fmt: skip

#: ways to join that have rules
METHODS = ("", "NATURAL")
KINDS = ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")

#: what people call it, where that is not the parser's word in capitals
NAMES = {
    "kind": "SELECT AS STRUCT",
    "connect": "CONNECT BY",
    "sample": "TABLESAMPLE",
    "match": "MATCH_RECOGNIZE",
    "on": "DISTINCT ON",
    "laterals": "LATERAL VIEW behind one of several relations",
}


def refuse_unknown_parts(context: Context, tree: exp.Expr) -> None:
    for node in tree.walk():
        known = KNOWN.get(exp.SetOperation if isinstance(node, exp.SetOperation) else type(node))
        if known is not None:
            for name, part in node.args.items():
                if part and name not in known:
                    raise context.unsupported(_where(part, node), NAMES.get(name, name.strip("_").upper()))
        if isinstance(node, exp.Join) and (node.method not in METHODS or node.kind not in KINDS):
            raise context.unsupported(node, f"{node.method} {node.kind} JOIN".strip())


def _where(part: object, node: exp.Expr) -> exp.Expr:
    first = part[0] if isinstance(part, list) else part
    return first if isinstance(first, exp.Expr) else node
