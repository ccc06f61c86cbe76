"""Everything that a generated query can have, with how often it has it, and what of it the compiler covers.

A weight multiplies the chance that the generator gives a feature by itself: 0 is never, 1 as often as is usual.
`--only` and `--without` take the names of features and of groups, and `covered` for what must not be refused.
"""

from __future__ import annotations

from collections.abc import Iterable

#: without these there is no query; every selection has them
ALWAYS = ("filter",)

#: A group names also what it cannot do without: groups and scalar subqueries need something to compute.
GROUPS: dict[str, tuple[str, ...]] = {
    "expressions": (
        "arithmetic", "case", "coalesce", "nullif", "casts", "strings", "dates", "in_list", "between", "like", "logic",
        "null_safe", "division",
    ),
    "arrays": ("arrays",),
    "joins": ("inner_join", "cross_join", "comma_join", "using", "natural_join", "non_equi_join", "nested_join"),
    "outer_joins": ("left_join", "right_join", "full_join"),
    "semi_joins": ("semi_join", "anti_join"),
    "relations": ("derived_table", "cte", "cte_like_table", "values", "no_from"),
    "sets": ("union", "union_all", "intersect", "intersect_all", "except", "except_all", "distinct"),
    "groups": ("group_by", "global_aggregate", "group_by_ordinal", "group_by_alias", "having", "count"),
    "grouping_sets": ("rollup", "cube", "grouping_sets", "grouping_function"),
    "aggregates": ("count", "sum", "avg", "over_aggregates"),
    "more_aggregates": (
        "min_max", "count_distinct", "sum_distinct", "bool_aggregates", "variance", "covariance", "filter_clause",
        "count_if", "max_by", "collect_list", "string_agg", "percentile",
    ),
    "windows": (
        "ranking", "row_number", "ntile", "lag_lead", "value_functions", "window_aggregates", "rows_frame",
        "range_frame", "named_window", "window_over_groups", "within_group", "qualify",
    ),
    "top_k": ("top_k", "offset"),
    "subqueries": (
        "in_subquery", "not_in_subquery", "in_pair", "not_in_pair", "exists", "not_exists", "scalar_subquery",
        "correlated", "correlated_inequality", "subquery_in_select", "subquery_in_having", "subquery_under_or",
        "subquery_below_groups",
        "global_aggregate", "count",
    ),
    "lateral": ("lateral", "correlated"),
    "explode": ("explode",),
    "pivot": ("pivot", "derived_table"),
    "recursive": ("recursive", "inner_join"),
    "ties": ("ties",),
    "noisy_doubles": ("noisy_doubles",),
    # timestamps without a zone
    "moments": ("moments",),
    # what DuckDB does otherwise, or sqlglot writes otherwise for it: only where Spark computes
    "spark_only": ("outer_explode", "empty_grand_total"),
}  # fmt: skip

FEATURES = tuple(dict.fromkeys((*ALWAYS, *(name for names in GROUPS.values() for name in names))))

#: only --spark has these
SPARK_ONLY = frozenset(GROUPS["spark_only"])

#: A case that has nothing else must not be refused. What a new operator makes possible goes in here.
COVERED: frozenset[str] = frozenset(FEATURES)

#: Reasons that are no gap but a decision; a query that is covered may be refused because of them.
DECIDED = (
    "floating-point aggregate",
    "IN of several columns that is not a condition of its own",
    "a WITH that speaks of a query around it",
    "over a frame of RANGE",
    # VALUES in the parentheses of a join, which sqlglot writes without parentheses of their own
    "not read by Trickle as Spark reads it",
)

Weights = dict[str, float]


def weights(only: Iterable[str] = (), without: Iterable[str] = (), *, spark: bool = False) -> Weights:
    """Everything, or only what is named (with what no query can be without), less what is not wanted."""
    chosen = set(_named(only)) | set(ALWAYS) if only else set(FEATURES)
    chosen -= set(_named(without))
    if not spark:
        chosen -= SPARK_ONLY
    return {name: 1.0 if name in chosen else 0.0 for name in FEATURES}


def _named(names: Iterable[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        if name not in GROUPS and name not in FEATURES and name != "covered":
            raise ValueError(f"no feature is called {name}; there are {', '.join([*GROUPS, *FEATURES])}")
        found += COVERED if name == "covered" else GROUPS.get(name, (name,))
    return found
