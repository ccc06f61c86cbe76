"""Is a stream table what its query says? Both are read by Spark, the query at the stream table's frontier.

Rows are compared as multisets: everything to the last digit, floating-point columns within a relative tolerance.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.algebra.types import is_float
from engine.compile.plan import MaintenancePlan
from engine.errors import InvalidArgument, NotPopulated
from engine.lake import queries, quoting, tables, views
from engine.records import Column, Evaluated, StreamTable
from engine.refresh.choose import is_random
from engine.refresh.observe import Target
from engine.refresh.plans import Located, restricted
from engine.results import VerifyResult

if TYPE_CHECKING:
    from engine.lake.spark_types import DataFrame, SparkSession

RELATIVE_TOLERANCE = 1e-9
#: no more rows that differ are brought to the driver
MAX_DIFFERENCES = 100_000
EXAMPLES = 5
_MOMENTS = ("date", "timestamp")


def verify(
    session: SparkSession,
    table: StreamTable,
    plan: MaintenancePlan,
    target: Target,
    sources: Sequence[Located],
    me: Evaluated | None,
) -> VerifyResult:
    """`me`: by whom the query would be computed now, where it asks for that."""
    began = time.perf_counter()
    if target.frontier is None:
        raise NotPopulated(f"{table.name} was never populated", hint=f"`trickle refresh {table.name}` does it")
    _refuse_incomparable(table, plan, target, me)
    queries.tune(session, small=False)
    for source in sources:
        version = target.frontier[source.name].version
        # a source's columns as they were then; of a stream table those that readers see
        columns = source.columns if source.is_stream_table else tables.columns(source.path, version)
        columns = restricted(columns, table.known_columns.get(source.name))
        views.of_past(session, source.name, source.path, version, columns)
    doing = f"verifying {table.name}"
    stored_name = "__trickle_verified"
    views.of_past(session, stored_name, table.path, target.version, table.columns)
    moment = target.evaluated.at if target.evaluated is not None else None
    query = plan.query_at(moment)
    for name, text in plan.views_at(moment):
        views.of_query(session, name, text)
    expected = _comparable(queries.run(session, query, doing), table.columns)
    actual = _comparable(queries.run(session, f"SELECT * FROM {stored_name}", doing), table.columns)  # noqa: S608  ours
    missing, unexpected = _differences(expected, actual, table.columns, doing)
    if any(is_float(column.type) for column in table.columns):
        missing, unexpected = _without_float_noise(missing, unexpected, table.columns)
    return VerifyResult(
        name=table.name,
        equal=not missing and not unexpected,
        rows=tables.pin(table.path, target.version).rows(),
        missing=sum(missing.values()),
        unexpected=sum(unexpected.values()),
        examples=_examples(missing, unexpected),
        frontier=target.frontier,
        duration_ms=(time.perf_counter() - began) * 1000,
    )


def _refuse_incomparable(table: StreamTable, plan: MaintenancePlan, target: Target, me: Evaluated | None) -> None:
    """An answer that changes by itself is compared with what it was for the same moment and the same person, or not."""
    if is_random(table):
        raise InvalidArgument(
            f"{table.name} changes by itself, so there is nothing to compare it with",
            detail=table.full_reason.text if table.full_reason is not None else None,
        )
    if plan.replay is None or me is None:
        return
    then = target.evaluated
    if then is None or plan.replay.obstacle is not None:
        raise InvalidArgument(
            f"{table.name} cannot be compared with what it was computed from",
            detail=plan.replay.obstacle or "its rows do not tell for which moment they were computed",
            hint="current_date() and current_timestamp() in the query itself can be computed again for the same moment",
        )
    who = plan.replay.asks_session and then.session != me.session
    if who or then.version != me.version:
        raise InvalidArgument(
            f"{table.name} was computed by another, and its query asks who it is",
            detail=f"it was {then.session if who else then.version}, and is {me.session if who else me.version} now",
            hint=f"`trickle refresh {table.name}` computes it anew",
        )


def _comparable(frame: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """Columns by position; what Spark does not compare in another form: maps as sorted entries, variants as JSON."""
    by_position = frame.toDF(*(f"c{index}" for index in range(len(columns))))
    chosen = [
        f"{_in_comparable_form(f'c{index}', column.type)} AS {quoting.name(column.name)}"
        for index, column in enumerate(columns)
    ]
    return by_position.selectExpr(*chosen)


def _in_comparable_form(name: str, type_: str) -> str:
    if "variant" in type_:
        return f"to_json({name})"
    return f"sort_array(map_entries({name}))" if type_.startswith("map<") else name


def _differences(
    expected: DataFrame, actual: DataFrame, columns: tuple[Column, ...], doing: str
) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """Rows that one has more often than the other, in one pass: equal rows cancel each other."""
    names = [quoting.name(name) for name in expected.columns]
    both = expected.selectExpr(*names, "1 AS __weight").unionAll(actual.selectExpr(*names, "-1 AS __weight"))
    # Grouped under names of our own: a column may be named like anything.
    plain = [f"c{index}" for index in range(len(names))]
    summed = both.toDF(*plain, "__weight").groupBy(*plain).agg({"__weight": "sum"}).toDF(*plain, "__net")
    # Python knows the years 1 to 9999 only
    shown = [
        f"CAST({name} AS STRING) AS {name}" if column.type.startswith(_MOMENTS) else name
        for name, column in zip(plain, columns, strict=True)
    ]
    differing = summed.where("__net <> 0").limit(MAX_DIFFERENCES).selectExpr(*shown, "__net")
    found = queries.collect(differing, doing)
    missing: Counter[tuple[Any, ...]] = Counter()
    unexpected: Counter[tuple[Any, ...]] = Counter()
    for row in found.to_pylist():
        *values, net = row.values()
        (missing if net > 0 else unexpected)[tuple(map(_hashable, values))] += abs(net)
    return missing, unexpected


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple(sorted((key, _hashable(each)) for key, each in value.items()))
    return value


def _without_float_noise(
    missing: Counter[tuple[Any, ...]], unexpected: Counter[tuple[Any, ...]], columns: tuple[Column, ...]
) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """Pairs rows that agree in all but the last digits of their floats."""
    floats = [index for index, column in enumerate(columns) if is_float(column.type)]

    def exact(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(value for index, value in enumerate(row) if index not in floats)

    waiting: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in unexpected.elements():
        waiting.setdefault(exact(row), []).append(row)
    left: Counter[tuple[Any, ...]] = Counter()
    for row in missing.elements():
        candidates = waiting.get(exact(row), [])
        partner = next((each for each in candidates if all(_close(row[i], each[i]) for i in floats)), None)
        if partner is None:
            left[row] += 1
        else:
            candidates.remove(partner)
    return left, Counter(row for rows in waiting.values() for row in rows)


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE)


def _examples(missing: Counter[tuple[Any, ...]], unexpected: Counter[tuple[Any, ...]]) -> tuple[str, ...]:
    lines = [f"missing: {row}" for row in list(missing)[:EXAMPLES]]
    lines += [f"unexpected: {row}" for row in list(unexpected)[:EXAMPLES]]
    return tuple(lines)
