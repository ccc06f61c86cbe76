"""Clauses that mean something else in Spark, or that it does not have."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.parse import names_itself
from engine.compile.translate.kinds import Kind
from engine.compile.translate.translating import SNOWFLAKE, Rule, Translating, number


def _select(context: Translating, node: exp.Select) -> exp.Expr:
    distinct = node.args.get("distinct")
    if len([each for each in node.expressions if each.unalias().find(exp.Explode)]) > 1:
        raise context.refused(node, "several UNNEST in one SELECT go in step there, and multiply in Spark")
    if distinct is not None and distinct.args.get("on") is not None:
        return _distinct_on(context, node, distinct.args["on"])
    return node


def _distinct_on(context: Translating, node: exp.Select, on: exp.Expr) -> exp.Expr:
    """The first row of each group: a choice by ROW_NUMBER."""
    order = node.args.get("order")
    keys = list(on.expressions) if isinstance(on, exp.Tuple) else [on.unnest()]
    if order is None:
        raise context.refused(node, "DISTINCT ON without ORDER BY does not say which row it keeps", "add ORDER BY")
    sorted_by = [each.this for each in order.expressions]
    if sorted_by[: len(keys)] != keys and {each.sql() for each in sorted_by[: len(keys)]} != {e.sql() for e in keys}:
        raise context.refused(node, "ORDER BY begins with other expressions than DISTINCT ON names")
    for clause in ("limit", "offset", "qualify"):
        if node.args.get(clause) is not None:
            raise context.refused(node, f"DISTINCT ON with {clause.upper()}", "put it into a derived table")
    if any(isinstance(each, exp.Literal) for each in (*keys, *sorted_by)):
        raise context.refused(node, "DISTINCT ON by the number of an output", "name the column")
    outputs = {each.alias.casefold() for each in node.expressions if isinstance(each, exp.Alias)}
    if any(isinstance(each, exp.Column) and each.name.casefold() in outputs for each in (*keys, *sorted_by)):
        raise context.refused(node, "DISTINCT ON by the alias of an output", "name the expression itself")
    place = exp.Window(
        this=exp.RowNumber(), partition_by=[each.copy() for each in keys], order=order.copy(), over="OVER"
    )
    made = node.copy()
    for clause in ("distinct", "order"):
        made.set(clause, None)
    made.set("qualify", exp.Qualify(this=exp.EQ(this=place, expression=exp.Literal.number(1))))
    return made


def _fetch(context: Translating, node: exp.Fetch) -> exp.Expr:
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        raise context.refused(node.parent or node, "WITH TIES and PERCENT", "use RANK() … QUALIFY")
    count = node.args.get("count")
    if count is None:
        return exp.Limit(expression=number(1))
    if not isinstance(count.unnest(), exp.Literal):
        raise context.refused(node, "FETCH of what is not a number")
    return exp.Limit(expression=count.unnest().copy())


def _limit(context: Translating, node: exp.Limit) -> exp.Expr:
    value = node.expression.unnest()
    if isinstance(value, exp.Null) or value.sql().upper() == "ALL":
        return exp.Limit(expression=exp.var("ALL"))
    if not isinstance(value, exp.Literal):
        raise context.refused(node, "LIMIT that is not a number")
    return exp.Limit(expression=value.copy())


def _offset(context: Translating, node: exp.Offset) -> exp.Expr:
    value = node.expression.unnest()
    if not isinstance(value, exp.Literal):
        raise context.refused(node, "OFFSET that is not a number")
    return exp.Offset(expression=value.copy())


def _tuple(context: Translating, node: exp.Tuple) -> exp.Expr:
    above = node.parent
    compared = isinstance(above, exp.Binary) or (isinstance(above, exp.In) and not above.args.get("query"))
    if compared or isinstance(above, exp.Is | exp.Between):
        raise context.refused(node, "rows are compared otherwise where they hold NULL", "compare column by column")
    return node


_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def _quantified(context: Translating, node: exp.Any | exp.All) -> exp.Expr:
    is_compared = isinstance(node.parent, _COMPARISONS) and node.arg_key == "expression"
    if not is_compared or not isinstance(_query(node), exp.Query):
        raise context.refused(node, "ANY and ALL other than of a subquery, behind a comparison,", "say IN or EXISTS")
    return node


def _query(node: exp.Any | exp.All) -> exp.Expr:
    query: exp.Expr = node.this.unnest()
    return query


def _compared(context: Translating, node: exp.Binary) -> exp.Expr:
    """Spark has no ANY and ALL: `= ANY` is IN, `<> ALL` is NOT IN, and the others look for a row that decides."""
    quantified = node.expression
    if not isinstance(quantified, exp.Any | exp.All):
        return node
    is_all, query = isinstance(quantified, exp.All), _query(quantified)
    if isinstance(node, exp.NEQ if is_all else exp.EQ) and _is_all_that_counts(node):
        found = exp.In(this=node.this.copy(), query=exp.Subquery(this=query.copy()))
        return exp.Not(this=found) if is_all else found
    return _with_unknown(node.this, type(node), query, is_all=is_all)


def _in(context: Translating, node: exp.In) -> exp.Expr:
    """Of a subquery Spark's is FALSE where it is not known, which makes no difference to WHERE, but to a value."""
    query = node.args.get("query")
    if query is None or _is_all_that_counts(node):
        return node
    if isinstance(node.this, exp.Tuple) or not isinstance(query.unnest(), exp.Query):
        raise context.refused(node, "IN of a subquery as a value may be NULL there", "ask for it in WHERE")
    return _with_unknown(node.this, exp.EQ, query.unnest(), is_all=False)


def _is_all_that_counts(node: exp.Expr) -> bool:
    """Does only matter whether it is true, or, with NOT around it, whether it is false?"""
    below, above = _around(node)
    if isinstance(above, exp.Not):
        below, above = _around(above)
    while isinstance(above, exp.And | exp.Or):
        below, above = _around(above)
    match above:
        case exp.Where() | exp.Having() | exp.Qualify():
            return True
        case exp.Join():
            return below.arg_key == "on"
        case exp.If():
            return below.arg_key == "this" and not (isinstance(above.parent, exp.Case) and above.parent.this)
        case _:
            return False


def _around(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """What stands around it but for parentheses, and what of that it is in."""
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return node, node.parent


def _with_unknown(value: exp.Expr, compared: type[exp.Binary], query: exp.Expr, *, is_all: bool) -> exp.Expr:
    """TRUE, FALSE, or NULL where that hangs on one."""
    one = compared(this=value.copy(), expression=exp.column("any_value", "any_row"))
    decides = exp.Not(this=exp.paren(one)) if is_all else one
    unknown = exp.Is(this=exp.paren(one.copy()), expression=exp.null())
    answer = exp.Case(
        ifs=[
            exp.If(this=_some_row(query, decides), true=exp.Boolean(this=not is_all)),
            exp.If(this=_some_row(query, unknown), true=exp.null()),
        ],
        default=exp.Boolean(this=is_all),
    )
    return exp.paren(answer)


def _some_row(query: exp.Expr, condition: exp.Expr) -> exp.Exists:
    alias = exp.TableAlias(this=exp.to_identifier("any_row"), columns=[exp.to_identifier("any_value")])
    rows = exp.Subquery(this=query.copy(), alias=alias)
    return exp.Exists(this=exp.select("1").from_(rows).where(condition))


def _ordered(context: Translating, node: exp.Ordered) -> exp.Expr:
    if isinstance(node.this, exp.Var | exp.Column) and node.this.sql().upper() == "ALL":
        raise context.refused(node, "ORDER BY ALL", "name the columns")
    if _hidden_by_outputs(node):
        raise context.refused(
            node,
            "ORDER BY of an expression speaks of columns there, and of outputs of the same name in Spark",
            "write the table's name before the column, or give the output another name",
        )
    if context.kind(node.this) is Kind.TEXT:
        context.notices.append(
            f'{context.dialect.value}: text is ordered by its bytes (COLLATE "C"), whatever its collation was there'
        )
    return node


def _hidden_by_outputs(node: exp.Ordered) -> bool:
    select = node.parent.parent if isinstance(node.parent, exp.Order) else None
    if not isinstance(select, exp.Select) or isinstance(node.this, exp.Column):
        return False
    made = {
        each.alias.casefold()
        for each in select.expressions
        if isinstance(each, exp.Alias) and not _is_column_named(each.this, each.alias)
    }
    return any(not column.table and column.name.casefold() in made for column in node.this.find_all(exp.Column))


def _is_column_named(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name.casefold() == name.casefold()


def _unnest(context: Translating, node: exp.Unnest) -> exp.Expr:
    if len(node.expressions) != 1:
        raise context.refused(node, "UNNEST of several lists goes in step there")
    if not isinstance(node.parent, exp.Join | exp.Lateral):
        raise context.refused(node, "UNNEST as the first relation of FROM")
    alias = node.args.get("alias") or node.parent.args.get("alias")
    if alias is None or not alias.this or len(alias.columns) != 1:
        raise context.refused(node, "UNNEST without a name for its column", "say UNNEST(…) AS u(x)")
    return node


def _join(context: Translating, node: exp.Join) -> exp.Expr:
    """A list as a relation: LATERAL VIEW in Spark, which sqlglot writes only of a comma or CROSS JOIN."""
    if node.kind in ("ASOF", "POSITIONAL") or node.method in ("ASOF", "POSITIONAL"):
        raise context.refused(node, f"{node.kind or node.method} JOIN")
    if node.side in ("RIGHT", "FULL") and any(map(_is_comma, _before(node))):
        raise context.refused(node, f"{node.side} JOIN behind a comma", "put the join in parentheses")
    unnested = _unnested(node)
    if unnested is not None and (node.side or node.args.get("on") is not None):
        raise context.refused(node, "UNNEST in an outer join or with ON", "say CROSS JOIN UNNEST(…)")
    if unnested is not None and None in map(_unnested, _after(node)):
        raise context.refused(unnested, "UNNEST before another join", "put it last in FROM")
    flattened = node.this.this if isinstance(node.this, exp.Lateral) else None
    if isinstance(flattened, exp.Explode) and (node.side or node.args.get("on") is not None):
        raise context.refused(node, "FLATTEN in an outer join or with ON", "say OUTER => TRUE")
    return node


def _before(node: exp.Join) -> list[exp.Join]:
    joins = _beside(node)
    return joins[: next((place for place, each in enumerate(joins) if each is node), 0)]


def _after(node: exp.Join) -> list[exp.Join]:
    return _beside(node)[len(_before(node)) + 1 :]


def _beside(node: exp.Join) -> list[exp.Join]:
    return node.parent.args.get("joins") or [] if node.parent is not None else []


def _unnested(join: exp.Join) -> exp.Unnest | None:
    """The list that it brings as a relation, with LATERAL or without."""
    brought = join.this.this if isinstance(join.this, exp.Lateral) else join.this
    return brought if isinstance(brought, exp.Unnest) else None


def _is_comma(join: exp.Join) -> bool:
    """To Spark it does not bind less than JOIN."""
    return not any(join.args.get(part) for part in ("side", "kind", "method", "on", "using"))


def _lateral(context: Translating, node: exp.Lateral) -> exp.Expr:
    if isinstance(node.this, exp.Subquery | exp.Unnest):
        return node
    if context.dialect is not SNOWFLAKE or not isinstance(node.this, exp.Explode):
        raise context.refused(node, "LATERAL of anything but a subquery")
    given = [node.this.this, *node.this.expressions]
    named = {each.this.name.upper(): each.expression for each in given if isinstance(each, exp.Kwarg)}
    value = named.pop("INPUT", None) or given[0]
    outer = named.pop("OUTER", None)
    if named or isinstance(value, exp.Kwarg) or context.kind(value) is not Kind.ARRAY:
        raise context.refused(node, "FLATTEN of anything but a typed list, or with PATH, RECURSIVE or MODE")
    # what else it has (SEQ, KEY, PATH, THIS) is not there, and Spark says so to whoever names it
    alias = exp.TableAlias(this=node.args["alias"].this, columns=[exp.to_identifier(n) for n in ("index", "value")])
    wanted = isinstance(outer, exp.Boolean) and bool(outer.this)
    return exp.Lateral(this=exp.Posexplode(this=value.copy()), view=True, outer=wanted, alias=alias)


def _with_views(context: Translating, node: exp.Select) -> exp.Expr:
    """LATERAL VIEW stands behind all joins."""
    joins = node.args.get("joins") or []
    views = [each.this for each in joins if isinstance(each.this, exp.Lateral) and each.this.args.get("view")]
    made = _select(context, node)
    if views:
        last = [isinstance(each.this, exp.Lateral) and bool(each.this.args.get("view")) for each in joins]
        if last != sorted(last):
            raise context.refused(node, "FLATTEN before another join", "put it last in FROM")
        made = made.copy()
        kept = [each for each, is_view in zip(made.args["joins"], last, strict=True) if not is_view]
        moved = [each.this for each, is_view in zip(made.args["joins"], last, strict=True) if is_view]
        made.set("joins", kept or None)
        made.set("laterals", [*(made.args.get("laterals") or []), *moved])
    return made


def _series(context: Translating, node: exp.GenerateSeries) -> exp.Expr:
    raise context.refused(
        node, "GENERATE_SERIES of what runs backwards is empty there, and not in Spark", "say VALUES (1), (2) …"
    )


def _explode(context: Translating, node: exp.Explode) -> exp.Expr:
    if isinstance(node.parent, exp.Lateral):
        return node
    if context.kind(node.this) is not Kind.ARRAY:
        raise context.refused(node, "UNNEST of what is not known to be a list")
    return node


def _kwarg(context: Translating, node: exp.Kwarg) -> exp.Expr:
    if not isinstance(node.parent, exp.Explode):
        raise context.refused(node, "a named argument")
    return node


def _grouping(context: Translating, node: exp.Grouping) -> exp.Expr:
    """Of several keys it is a number of as many bits, which has another name in Spark."""
    return exp.GroupingId(expressions=[each.copy() for each in node.expressions]) if len(node.expressions) > 1 else node


def _with(context: Translating, node: exp.With) -> exp.Expr:
    for each in node.expressions if node.args.get("recursive") else ():
        query = each.this
        if isinstance(query, exp.Union) and query.args.get("distinct") and names_itself(each):
            raise context.refused(
                query, "a recursion by UNION", "say UNION ALL, with a depth that ends it, and DISTINCT outside"
            )
    return node


RULES: dict[type[exp.Expr], Rule] = {
    exp.Select: _with_views,
    exp.Grouping: _grouping,
    exp.With: _with,
    exp.Fetch: _fetch,
    exp.Limit: _limit,
    exp.Offset: _offset,
    exp.Tuple: _tuple,
    exp.Any: _quantified,
    exp.All: _quantified,
    **dict.fromkeys(_COMPARISONS, _compared),
    exp.In: _in,
    exp.Ordered: _ordered,
    exp.Unnest: _unnest,
    exp.Join: _join,
    exp.Lateral: _lateral,
    exp.GenerateSeries: _series,
    exp.ExplodingGenerateSeries: _series,
    exp.Explode: _explode,
    exp.Kwarg: _kwarg,
}
