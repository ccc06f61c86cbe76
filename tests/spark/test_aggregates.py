"""Each aggregate is what the table of aggregates says: measured over nothing, over NULLs and over reordered rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from engine.compile.functions import AGGREGATES, FUNCTIONS, AggregateFunction, Order, Volatility
from engine.compile.functions.aggregates import A_SKETCH, AN_ERROR, COUNTS_NULLS
from engine.lake.session import SparkHost
from tests.functions.samples import COLUMNS, relation, samples

pytestmark = pytest.mark.spark

SAMPLES = {sample.name: sample for sample in samples() if sample.kind == "aggregate"}

#: rows with values such that the order can make a difference: sums that are rounded, ties, more than a sketch holds
ROWS = """
    SELECT id, CAST(id % 5000 AS int) AS i, CAST(id % 977 AS decimal(10,2)) AS n, sin(id) * pow(10, id % 17) AS d,
        CAST(sin(id) * 100 AS float) AS f, concat('k', id % 4001) AS s, id % 3 = 0 AS b,
        CAST(concat('k', id) AS binary) AS x, array(CAST(sin(id) AS float), CAST(cos(id) * 1e6 AS float)) AS q,
        parse_json(CASE WHEN id % 2 = 0 THEN '{"a": 1}' ELSE '{"b": 2.5}' END) AS v
    FROM range(6000)
"""
SKETCHES = """
    SELECT id % 40 AS id, theta_sketch_agg(pmod(hash(id), 20), 5) AS theta,
        tuple_sketch_agg_integer(i, i, 5) AS tuple_integer, tuple_sketch_agg_double(i, d, 5) AS tuple_double,
        tuple_sketch_agg_integer(pmod(hash(id), 20), i, 5) AS common_integer,
        tuple_sketch_agg_double(pmod(hash(id), 20), d, 5) AS common_double, hll_sketch_agg(i % 50) AS hll,
        kll_sketch_agg_bigint(i) AS kll_bigint, kll_sketch_agg_double(d) AS kll_double,
        kll_sketch_agg_float(f) AS kll_float, approx_top_k_accumulate(s) AS top
    FROM data GROUP BY id % 40
"""

#: what shows more than the sample call
CALLS: Mapping[str, str] = {
    "approx_top_k": "approx_top_k(s)",
    "approx_top_k_accumulate": "approx_top_k_accumulate(s)",
    "avg": "avg(d)",
    "bitmap_construct_agg": "bitmap_construct_agg(bitmap_bit_position(i))",
    # numbers of which always two have one hash
    "collect_set": "collect_set((id % 32 div 2 + 1) * if(id % 2 = 0, 1L, 4294967296L))",
    "kurtosis": "kurtosis(d)",
    "max_by": "max_by(s, i % 10)",
    "mean": "mean(d)",
    "median": "median(d)",
    "min_by": "min_by(s, i % 10)",
    "mode": "mode(i % 100)",
    "percentile": "percentile(d, 0.3)",
    "percentile_cont": "percentile_cont(0.25) WITHIN GROUP (ORDER BY d)",
    "regr_avgx": "regr_avgx(i, d)",
    "skewness": "skewness(d)",
    "std": "std(d)",
    "stddev": "stddev(d)",
    "stddev_pop": "stddev_pop(d)",
    "stddev_samp": "stddev_samp(d)",
    "sum": "sum(d)",
    "theta_sketch_agg": "theta_sketch_agg(i, 5)",
    "try_avg": "try_avg(d)",
    "try_sum": "try_sum(d)",
    "tuple_sketch_agg_double": "tuple_sketch_agg_double(i, d, 5)",
    "tuple_sketch_agg_integer": "tuple_sketch_agg_integer(i, i, 5)",
    "var_pop": "var_pop(d)",
    "var_samp": "var_samp(d)",
    "variance": "variance(d)",
}
#: aggregates of sketches, with the column of SKETCHES that they take
OF_SKETCHES: Mapping[str, str] = {
    "approx_top_k_combine": "approx_top_k_combine(top, 100)",
    "hll_union_agg": "hll_union_agg(hll)",
    "kll_merge_agg_bigint": "kll_merge_agg_bigint(kll_bigint)",
    "kll_merge_agg_double": "kll_merge_agg_double(kll_double)",
    "kll_merge_agg_float": "kll_merge_agg_float(kll_float)",
    "theta_intersection_agg": "theta_intersection_agg(theta)",
    "theta_union_agg": "theta_union_agg(theta)",
    "tuple_intersection_agg_double": "tuple_intersection_agg_double(common_double)",
    "tuple_intersection_agg_integer": "tuple_intersection_agg_integer(common_integer)",
    "tuple_union_agg_double": "tuple_union_agg_double(tuple_double)",
    "tuple_union_agg_integer": "tuple_union_agg_integer(tuple_integer)",
}
#: only a metric view can compute it
NOT_COMPUTED = {"measure"}


def calls(names: list[str]) -> dict[str, str]:
    return {name: CALLS.get(name, SAMPLES[name].call) for name in names if name not in {*OF_SKETCHES, *NOT_COMPUTED}}


def values(session: Any, wanted: Mapping[str, str], source: str) -> dict[str, str]:
    """All of them in one query, each as JSON."""
    columns = ", ".join(f"to_json(struct({call} AS value)) AS {name}" for name, call in wanted.items())
    return dict(session.sql(f"SELECT {columns} FROM {source}").collect()[0].asDict())


@pytest.fixture(scope="module")
def session(spark_host: SparkHost) -> Iterator[Any]:
    session = spark_host.session()
    partitions = session.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.timeType.enabled", "true")
    session.sql(relation(0)).createOrReplaceTempView("nothing")
    session.sql(relation(3)).createOrReplaceTempView("nulls")
    session.sql(ROWS).cache().createOrReplaceTempView("data")
    session.sql(SKETCHES).cache().createOrReplaceTempView("sketches")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    yield session
    session.conf.unset("spark.sql.adaptive.enabled")
    session.conf.unset("spark.sql.timeType.enabled")
    session.conf.set("spark.sql.shuffle.partitions", partitions)
    session.table("data").unpersist()
    session.table("sketches").unpersist()
    for view in ("nothing", "nulls", "data", "sketches", "arranged"):
        session.catalog.dropTempView(view)


def arranged(session: Any, source: str, order: int, partitions: int) -> str:
    """The same rows in an order of their own, in so many partitions."""
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    by = f"DISTRIBUTE BY pmod(xxhash64(id, {order}), 97) SORT BY xxhash64(id, {order} + 1), id"
    session.sql(f"SELECT * FROM {source} {by}").createOrReplaceTempView("arranged")
    return "arranged"


def test_each_aggregate_is_in_the_table() -> None:
    assert set(AGGREGATES) == set(SAMPLES)
    assert all(AGGREGATES[each.same_as].same_as == each.same_as for each in AGGREGATES.values())


@pytest.mark.parametrize(("source", "said"), [("nothing", "empty"), ("nulls", "all_null")])
def test_what_there_is_of_nothing(session: Any, source: str, said: str) -> None:
    expected = {name: getattr(each, said) for name, each in AGGREGATES.items()}
    source = f"(SELECT *, CAST(NULL AS {TOP}) AS top FROM {source})"
    plain = {name: OF_SKETCHES[name] if "SELECT" in each.call else each.call for name, each in SAMPLES.items()}
    found = values(session, {name: call for name, call in plain.items() if expected[name] != AN_ERROR}, source)
    literal = {
        name: f"({value})" for name, value in expected.items() if value not in (A_SKETCH, AN_ERROR, COUNTS_NULLS)
    }
    wanted = values(session, literal, "range(1)")
    assert {name: found[name] for name in wanted} == wanted
    sketches = [name for name, value in expected.items() if value == A_SKETCH]
    assert [name for name in sketches if found[name] == "{}"] == []
    counting = [name for name, value in expected.items() if value == COUNTS_NULLS]
    assert [found[name] for name in counting] == ['{"value":[{"count":3}]}'] * len(counting)
    for name, value in expected.items():
        if value == AN_ERROR:
            with pytest.raises(Exception, match=r"."):
                values(session, {name: plain[name]}, source)


#: what approx_top_k_combine takes
TOP = "struct<sketch:binary,maxItemsTracked:int,itemDataType:int,itemDataTypeDDL:string>"


@pytest.fixture(scope="module")
def by_order(session: Any) -> list[dict[str, str]]:
    """Everything, over the same rows in five orders; the first one twice."""
    found = []
    for order, partitions in ((1, 1), (1, 1), (2, 1), (3, 3), (4, 5)):
        every = values(session, calls(list(SAMPLES)), arranged(session, "data", order, partitions))
        every |= values(session, OF_SKETCHES, arranged(session, "sketches", order, partitions))
        found.append(every)
    return found


#: added to be safe: its sums are exact, but it lists its entries as its sister does, and that one differs
NOT_SEEN = {"tuple_intersection_agg_integer"}


def test_only_what_says_so_depends_on_the_order_of_rows(by_order: list[dict[str, str]]) -> None:
    differing = {name for name in by_order[0] if len({found[name] for found in by_order}) > 1}
    said = {name for name, each in AGGREGATES.items() if each.order is not Order.NEVER} - NOT_COMPUTED
    assert differing == said - NOT_SEEN


def test_what_is_volatile_differs_over_the_same_rows_in_the_same_order(by_order: list[dict[str, str]]) -> None:
    first, again, *_ = by_order
    differing = {name for name in first if first[name] != again[name]}
    assert differing == {name for name in AGGREGATES if FUNCTIONS[name].volatility is Volatility.VOLATILE}


def test_exact_types_are_added_exactly(session: Any) -> None:
    wanted = {
        "int": "sum(i)",
        "decimal": "sum(n)",
        "average": "avg(n)",
        "text": "listagg(s, ',') WITHIN GROUP (ORDER BY s)",
        "mode": "mode(i % 100, true)",
        "set": "array_sort(collect_set(s))",
    }
    found = [values(session, wanted, arranged(session, "data", order, 3)) for order in (1, 2, 3)]
    assert found[0] == found[1] == found[2]


def one_order(session: Any, query: str) -> str:
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.sql(f"SELECT * FROM ({query}) DISTRIBUTE BY 1 SORT BY place, id").createOrReplaceTempView("arranged")
    return "arranged"


def comparable() -> list[str]:
    """Those of which two values can be compared."""
    return [name for name, each in AGGREGATES.items() if FUNCTIONS[name].volatility is Volatility.IMMUTABLE]


def test_nulls_are_skipped_or_not(session: Any) -> None:
    wanted = calls(comparable())
    wanted |= {"max_by": "max_by(s, coalesce(i, 10000))", "min_by": "min_by(s, coalesce(i, -1))"}
    names = ["id", "i", "n", "d", "f", "s", "b", "x", "q", "v"]
    nulls = ", ".join(f"CAST(NULL AS {COLUMNS.get(name, 'bigint')}) AS {name}" for name in names)
    rows = f"SELECT 2 AS place, {', '.join(names)} FROM data"
    around = " UNION ALL ".join(f"SELECT {place} AS place, {nulls} FROM range(300)" for place in (1, 3))
    alone = values(session, wanted, one_order(session, rows))
    amid = values(session, wanted, one_order(session, f"{rows} UNION ALL {around}"))
    assert {name for name in alone if alone[name] != amid[name]} == expected(lambda each: not each.skips_nulls, wanted)


def test_duplicates_matter_or_not(session: Any) -> None:
    wanted = calls(comparable())
    more = " UNION ALL ".join(["SELECT 2 AS place, * FROM data WHERE i % 10 = 3 AND i < 3000"] * 3)
    alone = values(session, wanted, one_order(session, "SELECT 1 AS place, * FROM data"))
    twice = values(session, wanted, one_order(session, f"SELECT 1 AS place, * FROM data UNION ALL {more}"))
    differing = {name for name in alone if alone[name] != twice[name]}
    assert differing - {"last", "last_value"} == expected(lambda each: each.duplicates_matter, wanted)


def expected(holds: Callable[[AggregateFunction], bool], among: Mapping[str, str]) -> set[str]:
    return {each.name for each in AGGREGATES.values() if each.name in among and holds(each)}
