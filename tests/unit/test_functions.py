"""Functions: which one a call is, whether its answer changes by itself, and what follows."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from engine.algebra.dialect import Spark4
from engine.compile import functions
from engine.compile.functions import changing, rows, scalars
from engine.compile.functions.model import Function, Kind, Volatility, worst
from engine.compile.functions.policy import Ruling, VolatileFunctionPolicy
from engine.errors import Position, VolatileFunction
from engine.lake.opinion import Opinion
from engine.lake.sql_functions import SqlFunction
from engine.records import ReasonCode
from tests.functions.samples import Sample, samples

SAMPLES = samples()

#: names for which Spark has two spellings, of which the parser keeps one
SAME = {"!": "not", "<>": "!=", "==": "=", "when": "case"}
#: sqlglot takes it for two signs and a syntax error
UNREAD = {">>>"}


def parsed(query: str) -> exp.Expr:
    return sqlglot.parse_one(query, dialect=Spark4)


def volatility(tree: exp.Expr) -> Volatility:
    return worst(*(found.volatility for found in functions.classify(tree)))


def test_every_function_is_in_one_table() -> None:
    names = [sample.name for sample in SAMPLES]
    assert len(names) == len(set(names)) == 574
    # what DESCRIBE does not list: the parser makes these
    assert set(functions.FUNCTIONS) - set(names) == {"try_cast", "timestampadd", "timestampdiff"}
    tables = [*scalars.FAMILIES.values(), changing.STABLE, changing.VOLATILE, changing.FORBIDDEN, functions.AGGREGATES]
    tables += [changing.STABLE_TABLES, changing.VOLATILE_TABLES, rows.WINDOW, rows.GENERATORS, rows.TABLES]
    tables += [rows.GROUPING]
    assert sum(map(len, tables)) == len(functions.FUNCTIONS)
    assert set(changing.VOLATILE_AGGREGATES) <= set(functions.AGGREGATES)


def test_what_changes_by_itself_says_why() -> None:
    for function in functions.FUNCTIONS.values():
        assert bool(function.why) == (function.volatility is not Volatility.IMMUTABLE), function


@pytest.mark.parametrize("file", ["samples.txt", "spellings.txt"])
def test_a_call_is_found_under_its_name_and_classified(file: str) -> None:
    assert [problem for sample in samples(file) for problem in problems(sample)] == []


def problems(sample: Sample) -> list[str]:
    if sample.name in UNREAD:
        return []
    tree = parsed(sample.query)
    name = SAME.get(sample.name, sample.name)
    found = [each for _, each in functions.calls(tree)]
    unknown = [each for each in found if functions.kind(each) is Kind.UNKNOWN]
    checks = {
        f"{name} is not among {found}": name in found,
        f"{unknown} in {sample.call}": not unknown,
        f"{name} is no {sample.kind}": functions.kind(name) == sample.kind,
        f"{sample.call} is {volatility(tree)}": volatility(tree) == sample.volatility,
    }
    return [problem for problem, holds in checks.items() if not holds]


def test_what_the_parser_cannot_read_is_still_a_syntax_error() -> None:
    for sample in SAMPLES:
        if sample.name in UNREAD:
            with pytest.raises(sqlglot.ParseError):
                parsed(sample.query)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("default.abs(i)", "default.abs"),
        ("spark_catalog.default.abs(i)", "spark_catalog.default.abs"),
        ("`Shop`.`Tax Rate`(i)", "shop.tax rate"),
        ("my_udf(i)", "my_udf"),
        ("default.count(i)", "default.count"),
    ],
)
def test_a_function_of_ones_own_is_unknown_whatever_it_is_called(call: str, name: str) -> None:
    (found,) = functions.classify(parsed(f"SELECT {call} FROM t"))
    assert (found.name, found.volatility) == (name, Volatility.UNKNOWN)
    assert functions.kind(name) is Kind.UNKNOWN


def test_a_table_function_of_ones_own() -> None:
    assert [found.name for found in functions.classify(parsed("SELECT * FROM shop.f(1), g(2)"))] == ["shop.f", "g"]


@pytest.mark.parametrize(
    ("expression", "suspected"),
    [
        ("DATE 'today'", False),
        ("CAST(' Now ' AS TIMESTAMP)", False),
        ("to_date('tomorrow')", False),
        ("TIMESTAMP 'yesterday Europe/Berlin'", False),
        ("dt = 'today'", True),
        ("year('now')", True),
        ("user", True),
    ],
)
def test_words_that_are_moments(expression: str, suspected: bool) -> None:
    (found,) = functions.classify(parsed(f"SELECT {expression} FROM t"))
    assert (found.volatility, found.suspected) == (Volatility.STABLE, suspected)


@pytest.mark.parametrize(
    "expression", ["DATE '2024-01-01'", "'nowhere'", "'todays'", "'now or never'", "t.user", "now"]
)
def test_words_that_are_none(expression: str) -> None:
    assert functions.classify(parsed(f"SELECT {expression} FROM t")) == ()


def test_samples_are_volatile() -> None:
    (found,) = functions.classify(parsed("SELECT * FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (7)"))
    assert (found.name, found.volatility) == ("TABLESAMPLE", Volatility.VOLATILE)


# -- what follows ---------------------------------------------------------------------------------------------

CALM = Opinion(deterministic=True, clock=False, session=False)


def ruled(query: str, **options: object) -> Ruling:
    options = {"full": False, **options}
    return functions.rule(functions.classify(parsed(query)), query, **options)  # type: ignore[arg-type]


def refused(query: str, **options: object) -> VolatileFunction:
    with pytest.raises(VolatileFunction) as caught:
        ruled(query, **options)
    return caught.value


def test_what_is_immutable_is_fine() -> None:
    assert ruled("SELECT upper(s) FROM t") == Ruling(Volatility.IMMUTABLE)


def test_what_is_volatile_is_refused_unless_full_is_asked_for() -> None:
    error = refused("SELECT i,\n  rand(7) FROM t")
    assert error.message.startswith("rand draws at random")
    assert error.position == Position(2, 3)
    assert "FULL" in (error.hint or "")
    ruling = ruled("SELECT rand() FROM t", full=True)
    assert ruling.volatility is Volatility.VOLATILE
    assert ruling.reason is not None
    assert ruling.reason.code is ReasonCode.VOLATILE
    assert "verify cannot compare" in ruling.notices[0].text


def test_code_is_never_run() -> None:
    for full in (True, False):
        assert "never allowed" in refused("SELECT reflect('java.lang.Math', 'abs', i) FROM t", full=full).message


def test_the_clock_is_a_matter_of_policy() -> None:
    query = "SELECT current_date FROM t"
    ruling = ruled(query)
    assert (ruling.volatility, len(ruling.notices)) == (Volatility.STABLE, 1)
    assert ruling.reason is not None
    assert ruling.reason.position == Position(1, 8)
    assert refused(query, policy=VolatileFunctionPolicy.REJECT).position == Position(1, 8)
    assert ruled(query, policy=VolatileFunctionPolicy.REJECT, full=True).volatility is Volatility.STABLE


def test_the_wildest_decides() -> None:
    assert refused("SELECT now(), uuid() FROM t").message.startswith("uuid")
    assert ruled("SELECT now(), uuid() FROM t", full=True).volatility is Volatility.VOLATILE


def test_an_unknown_function_is_refused_with_a_way_out() -> None:
    error = refused("SELECT shop.tax(i) FROM t")
    assert error.message == "shop.tax is none of Spark's own, and nobody has declared it immutable"
    assert "compile.immutable_functions" in (error.hint or "")
    assert ruled("SELECT shop.tax(i) FROM t", full=True).volatility is Volatility.VOLATILE


def test_spark_decides_what_only_it_can_know() -> None:
    query = "SELECT i FROM t WHERE s = 'today'"
    assert ruled(query).volatility is Volatility.STABLE
    assert ruled(query, opinion=CALM).volatility is Volatility.IMMUTABLE
    assert ruled(query, opinion=Opinion(True, True, False)).volatility is Volatility.STABLE
    hidden = ruled("SELECT f(i) FROM t", opinion=Opinion(True, False, True), full=True)
    assert hidden.volatility is Volatility.VOLATILE
    assert refused("SELECT i FROM t", opinion=Opinion(False, False, False)).position is None


# -- declared -------------------------------------------------------------------------------------------------


def sql(body: str, deterministic: bool = True, reads_tables: bool = False, returns_table: bool = False) -> SqlFunction:
    return SqlFunction("f", deterministic, reads_tables, returns_table, body)


MADE = {
    "plus": sql("x + 1"),
    "twice": sql("plus(x) + default.plus(x)"),
    "default.plus": sql("x + 1"),
    "lies": sql("x + rand()"),
    "owns_up": sql("x + 1", deterministic=False),
    "its_day": sql("current_date"),
    "deep": sql("twice(lies(x))"),
    "counts": sql("(SELECT count(*) FROM orders)"),
    "reads": sql("f.x", reads_tables=True),
    "lines": sql("SELECT x + 1", returns_table=True),
    "loop": sql("loop(x)"),
    "odd": sql("x +"),
}


def declare(query: str, *immutable: str) -> dict[str, Function]:
    return dict(functions.declared([parsed(query)], immutable, MADE.get).functions)


@pytest.mark.parametrize(
    ("name", "expected", "why"),
    [
        ("plus", Volatility.IMMUTABLE, ""),
        ("twice", Volatility.IMMUTABLE, ""),
        ("lies", Volatility.VOLATILE, "calls rand, which draws at random"),
        ("owns_up", Volatility.VOLATILE, "is not deterministic"),
        ("its_day", Volatility.STABLE, "calls current_date, which reads the clock"),
        ("deep", Volatility.VOLATILE, "calls lies, which calls rand, which"),
        ("counts", Volatility.VOLATILE, "reads tables"),
        ("reads", Volatility.VOLATILE, "reads tables"),
        ("loop", Volatility.UNKNOWN, "calls loop"),
        ("odd", Volatility.UNKNOWN, "cannot read"),
        ("java", Volatility.UNKNOWN, "none of Spark's own"),
    ],
)
def test_bodies_tell(name: str, expected: Volatility, why: str) -> None:
    found = declare(f"SELECT {name}(1), upper('a') FROM t")[name]
    assert found.volatility is expected
    assert why in found.why
    assert found.kind is (Kind.SCALAR if name in MADE else Kind.UNKNOWN)


def test_all_that_a_query_reaches() -> None:
    query = parsed("SELECT deep(1), abs(2) FROM lines(1)")
    reached = functions.declared([query], (), MADE.get)
    assert reached.names == ("deep", "default.plus", "lies", "lines", "plus", "twice")
    assert reached.functions["lines"] == Function("lines", Kind.TABLE)


def test_the_settings_have_the_last_word() -> None:
    assert declare("SELECT java(1) FROM t", "java")["java"].volatility is Volatility.IMMUTABLE
    assert declare("SELECT shop.java(1) FROM t", "java")["shop.java"].volatility is Volatility.IMMUTABLE
    assert declare("SELECT java(1) FROM t", "shop.java")["java"].volatility is Volatility.UNKNOWN
    assert declare("SELECT rand(1) FROM t", "rand") == {}


def test_what_is_declared_is_believed() -> None:
    query = parsed("SELECT plus(i), lies(i) FROM t")
    known = functions.declared([query], (), MADE.get).functions
    assert [found.name for found in functions.classify(query, known)] == ["lies"]
