"""Is what we say of Spark's functions what Spark says of them, and does it know others?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlglot
from pyspark.errors import PySparkException

from engine.algebra.dialect import Spark4
from engine.compile import functions
from engine.compile.functions.model import Kind, Volatility, worst
from engine.errors import TrickleError
from engine.lake import opinion, sql_functions
from engine.lake.session import SparkHost
from engine.lake.sql_functions import SqlFunction
from tests.functions.samples import Sample, relation, samples

pytestmark = pytest.mark.spark

#: what has to be switched on before Spark knows of it
SWITCHES = ("spark.sql.timeType.enabled", "spark.sql.geospatial.enabled", "spark.sql.pyspark.worker.logging.enabled")

#: calls that need what is not there
NOT_HERE = {
    "from_avro": "Avro data source is not loaded",
    "to_avro": "Avro data source is not loaded",
    "schema_of_avro": "Avro data source is not loaded",
    "from_protobuf": "PROTOBUF_DESCRIPTOR_FILE_NOT_FOUND",
    "to_protobuf": "PROTOBUF_DESCRIPTOR_FILE_NOT_FOUND",
}

#: where we know better, on purpose
WE_SAY = {
    **dict.fromkeys(
        [
            f"kll_{what}_{of}"
            for what in ("merge_agg", "sketch_agg", "sketch_merge")
            for of in ("bigint", "double", "float")
        ],
        "a random sample: see test_aggregates.py",
    ),
    "aes_encrypt": "a random vector, which Spark takes for a matter of the value",
    "python_worker_logs": "a relation that grows; Spark looks at expressions",
    "version": "another Spark may run the next refresh; to Spark it is a constant",
    "collations": "another Spark may know more; Spark looks at expressions",
    "sql_keywords": "another Spark may know more; Spark looks at expressions",
}


@pytest.fixture(scope="module")
def session(spark_host: SparkHost) -> Iterator[Any]:
    session = spark_host.session()
    for switch in SWITCHES:
        session.conf.set(switch, "true")
    session.sql(relation(3)).createOrReplaceTempView("samples")
    yield session
    session.catalog.dropTempView("samples")
    for switch in SWITCHES:
        session.conf.unset(switch)


def here() -> list[Sample]:
    return [sample for sample in (*samples(), *samples("spellings.txt")) if sample.name not in NOT_HERE]


def failing(among: list[Sample], holds: Callable[[str, Sample], bool]) -> list[str]:
    """Those for which it does not hold; alike ones are asked about in one query, and parted when something is wrong."""
    if not among:
        return []
    first = among[0]
    query = first.query if len(among) == 1 else f"SELECT {', '.join(each.call for each in among)} FROM samples"
    try:
        if holds(query, first):
            return []
    except (TrickleError, PySparkException) as error:
        if len(among) == 1:
            return [f"{first.call}: {error}"]
    if len(among) == 1:
        return [first.call]
    half = len(among) // 2
    return failing(among[:half], holds) + failing(among[half:], holds)


def alike(among: list[Sample]) -> Iterator[list[Sample]]:
    """Groups that may stand in one SELECT."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in among:
        if sample.call.startswith("SELECT") or sample.kind == "generator":
            yield [sample]
        else:
            groups.setdefault((sample.kind, sample.volatility), []).append(sample)
    yield from groups.values()


def test_the_list_is_what_spark_has(session: Any) -> None:
    assert {row[0] for row in session.sql("SHOW SYSTEM FUNCTIONS").collect()} == {each.name for each in samples()}


def test_each_call_means_something_and_makes_what_we_say(session: Any) -> None:
    """By the operators that Spark puts the call into."""

    def is_so(query: str, sample: Sample) -> bool:
        plan = session.sql(query)._jdf.queryExecution().analyzed().toString()
        if sample.kind == "table" or sample.name in ("window_time", "approx_top_k_estimate"):
            return True  # a place in FROM, or a call over what an aggregate made
        over = functions.kind(sample.name) is Kind.AGGREGATE and " OVER " in sample.call
        return {
            "Aggregate [": sample.kind == "grouping" or (sample.kind == "aggregate" and not over),
            "Window [": sample.kind == "window" or over,
            "Generate ": sample.kind == "generator",
        } == {word: word in plan for word in ("Aggregate [", "Window [", "Generate ")}

    assert [each for group in alike(here()) for each in failing(group, is_so)] == []


@pytest.mark.parametrize("name", NOT_HERE)
def test_what_is_not_here_is_known_to_be_missing(session: Any, name: str) -> None:
    (sample,) = (each for each in samples() if each.name == name)
    with pytest.raises(Exception, match=NOT_HERE[name]):
        session.sql(sample.query)


def test_spark_agrees_or_we_say_why(session: Any) -> None:
    def agrees(query: str, sample: Sample) -> bool:
        return by_spark(session, query) is by_us(sample)

    agreed = [each for each in here() if each.name not in WE_SAY]
    # of several that are not immutable, one would hide the others
    groups = [group for group in alike(agreed) if group[0].volatility == "immutable"]
    groups += [[each] for each in agreed if each.volatility != "immutable"]
    assert [each for group in groups for each in failing(group, agrees)] == []


@pytest.mark.parametrize("name", WE_SAY)
def test_where_we_differ(session: Any, name: str) -> None:
    (sample,) = (each for each in samples() if each.name == name)
    assert by_spark(session, sample.query) is Volatility.IMMUTABLE
    assert by_us(sample) is not Volatility.IMMUTABLE


#: calls that sqlglot writes otherwise than it read them: a query with one is recomputed
NOT_WRITTEN_ALIKE = {
    "i >>> 1": "cannot be read",
}


def test_what_the_parser_understood_means_the_same_to_spark(spark_host: SparkHost, session: Any) -> None:
    def is_so(query: str, sample: Sample) -> bool:
        try:
            rendered = sqlglot.parse_one(query, dialect=Spark4).sql(dialect=Spark4)
        except sqlglot.ParseError:
            return False
        return spark_host.same_semantics(query, rendered)

    immutable = [each for each in here() if each.volatility == "immutable"]
    assert {call for group in alike(immutable) for call in failing(group, is_so)} == set(NOT_WRITTEN_ALIKE)


def by_spark(session: Any, query: str) -> Volatility:
    said = opinion.of(session, query)
    if not said.deterministic:
        return Volatility.VOLATILE
    return Volatility.STABLE if said.clock or said.session else Volatility.IMMUTABLE


def by_us(sample: Sample) -> Volatility:
    """Code that is run is not deterministic to Spark either."""
    said = Volatility(sample.volatility)
    return Volatility.VOLATILE if said is Volatility.FORBIDDEN else said


@pytest.mark.parametrize(
    ("query", "clock"),
    [
        ("SELECT i FROM samples WHERE dt = 'today'", True),
        ("SELECT year('now')", True),
        ("SELECT CAST(concat('to', 'day') AS DATE)", True),
        ("SELECT i FROM samples WHERE i IN (SELECT second(now()))", True),
        ("SELECT i FROM samples WHERE s = 'today'", False),
        ("SELECT CAST(s AS DATE) FROM samples", False),
        # a literal is made by the parser, before there is a plan: our own reading of the text finds it
        ("SELECT DATE 'today'", False),
    ],
)
def test_words_that_spark_makes_moments_of(session: Any, query: str, clock: bool) -> None:
    said = opinion.of(session, query)
    assert (said.deterministic, said.clock or said.words, said.session) == (True, clock, False)
    found = functions.classify(sqlglot.parse_one(query, dialect=Spark4))
    ours = any(each.volatility is Volatility.STABLE and not each.suspected for each in found)
    ruling = functions.rule(found, query, full=False, opinion=said)
    assert (ruling.volatility is Volatility.STABLE) == (clock or ours)


@pytest.fixture
def made(session: Any) -> Iterator[Any]:
    """Functions that somebody made: some under the names of Spark's own."""
    texts = {
        "plus": "(x INT) RETURNS INT COMMENT 'Body: none' RETURN\n  x +\n  1",
        "day_now": "() RETURNS DATE DETERMINISTIC RETURN current_date",
        "lies": "(x INT) RETURNS DOUBLE DETERMINISTIC RETURN x + rand()",
        "owns_up": "(x INT) RETURNS INT NOT DETERMINISTIC RETURN x + 1",
        "twice": "(x INT) RETURNS INT RETURN plus(x) + default.plus(x)",
        "reads": "(x INT) RETURNS INT RETURN (SELECT count(*) FROM default.trickle_read)",
        "lines": "(x INT) RETURNS TABLE (y INT) RETURN SELECT x + 1",
        "upper": "(x STRING) RETURNS STRING RETURN concat(x, uuid())",
    }
    session.sql("CREATE TABLE default.trickle_read (x INT) USING parquet")
    for name, text in texts.items():
        session.sql(f"CREATE FUNCTION default.{name}{text}")
    yield session
    for name in texts:
        session.sql(f"DROP FUNCTION default.{name}")
    session.sql("DROP TABLE default.trickle_read")


def test_what_spark_tells_of_a_function(made: Any) -> None:
    assert sql_functions.look_up(made, "plus") == SqlFunction(
        "spark_catalog.default.plus", True, False, False, "x +\n  1"
    )
    assert sql_functions.look_up(made, "default.lines") == SqlFunction(
        "spark_catalog.default.lines", True, False, True, "SELECT x + 1"
    )
    assert sql_functions.look_up(made, "abs") is None
    # Spark does not tell whether somebody declared it, and finds the clock deterministic
    facts = {name: sql_functions.look_up(made, name) for name in ("plus", "lies", "day_now", "owns_up")}
    assert {name: fact and fact.deterministic for name, fact in facts.items()} == {
        "plus": True,
        "lies": True,
        "day_now": True,
        "owns_up": False,
    }


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("plus(1)", Volatility.IMMUTABLE),
        ("spark_catalog.default.plus(1)", Volatility.IMMUTABLE),
        ("twice(1)", Volatility.IMMUTABLE),
        ("day_now()", Volatility.STABLE),
        ("lies(1)", Volatility.VOLATILE),
        ("owns_up(1)", Volatility.VOLATILE),
        ("reads(1)", Volatility.VOLATILE),
        ("default.upper('a')", Volatility.VOLATILE),
        ("upper('a')", Volatility.IMMUTABLE),
        ("builtin.upper('a')", Volatility.IMMUTABLE),
    ],
)
def test_functions_of_ones_own(made: Any, call: str, expected: Volatility) -> None:
    query = f"SELECT {call} FROM samples"
    tree = sqlglot.parse_one(query, dialect=Spark4)
    declared = functions.declared(tree, (), lambda name: sql_functions.look_up(made, name))
    found = functions.classify(tree, declared.functions)
    assert worst(*(each.volatility for each in found)) is expected
    if call not in ("owns_up(1)", "reads(1)"):  # a declaration is no expression, and a table is not looked at
        assert by_spark(made, query) is expected
