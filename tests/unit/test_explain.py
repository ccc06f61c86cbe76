"""What the verbs say that look into the compiler, over DuckDB's idea of names and types."""

from __future__ import annotations

import pytest

from engine import explain
from engine.compile.parse import Limits
from engine.compile.pipeline import Request, compile_query
from engine.compile.plan import MaintenancePlan
from engine.errors import InvalidArgument, Position, UnsupportedOperator, VolatileFunction
from engine.explain import Explainer
from engine.explain_text import text_of, tree_of
from engine.records import Column, ReasonCode
from engine.refresh.plans import Located, Plans
from tests.support.duck_analyzer import DuckAnalyzer

TABLES = {
    "orders": (
        Column("id", "bigint"),
        Column("customer", "int"),
        Column("amount", "decimal(8,2)"),
        Column("x", "double"),
    ),
    "customers": (Column("id", "int"), Column("region", "string")),
}
BY_REGION = (
    "SELECT c.region, SUM(o.amount) AS total, COUNT(*) AS orders FROM orders o "
    "JOIN customers c ON o.customer = c.id WHERE c.region <> 'x' GROUP BY c.region"
)


class Tables(dict[str, tuple[Column, ...]]):
    def located(self, name: str) -> Located:
        return Located(name, f"/lake/{name}", self[name], False)


class DuckPlans(Plans):
    """Without a catalog, and without Spark."""

    def __init__(self) -> None:
        self._dialect = "spark"
        self._limits = Limits()
        self.relations = Tables(TABLES)  # type: ignore[assignment]

    def compile(self, query: str, *, full: bool, relations: object = None) -> MaintenancePlan:
        return compile_query(Request(query, TABLES, full=full), DuckAnalyzer(TABLES))


@pytest.fixture
def explainer(monkeypatch: pytest.MonkeyPatch) -> Explainer:
    monkeypatch.setattr(explain.tables, "cdf_enabled", lambda path: path != "/lake/mute")
    return Explainer(None, None, DuckPlans(), None, 1000)  # type: ignore[arg-type]


def test_a_good_query(explainer: Explainer) -> None:
    found = explainer.validate(BY_REGION)
    assert found.valid
    assert found.explanation is not None
    assert (found.explanation.mode, found.explanation.reason) == ("differential", None)
    assert found.explanation.identity == "by group, stored sums (region)"
    assert [column.name for column in found.explanation.columns] == ["region", "total", "orders"]
    assert found.explanation.sources == ("orders", "customers")
    assert all(node.rule and node.why for _, node in found.explanation.root.drawn())
    assert tree_of(found).splitlines()[0].startswith("Result region   [by group, stored sums] counts and exact sums")
    assert text_of(found).startswith("valid  yes\nmode        differential\n")


def test_a_query_that_is_recomputed(explainer: Explainer) -> None:
    found = explainer.validate("SELECT customer FROM orders\nGROUP BY customer\nHAVING SUM(x) > 1")
    assert found.valid
    assert found.explanation is not None
    assert found.explanation.mode == "full"
    reason = found.explanation.reason
    assert reason is not None
    assert (reason.code, reason.position, reason.fragment) == (ReasonCode.UNSUPPORTED, Position(3, 8), "SUM(x) > 1")
    assert "at          line 3, column 8: SUM(x) > 1" in text_of(found).splitlines()


@pytest.mark.parametrize(
    ("query", "code", "position"),
    [
        ("SELECT id FROM orders WHERE", "QueryParseError", Position(1, 23)),
        ("SELECT id FROM ordres", "NotFound", Position(1, 16)),
        ("SELECT 1 AS a", "QueryParseError", Position(1, 1)),
        ("SELECT id AS __trickle_x FROM orders", "InvalidArgument", Position(1, 8)),
        ("DELETE FROM orders", "QueryParseError", Position(1, 1)),
        ("SELECT id, rand() AS r FROM orders", "VolatileFunction", Position(1, 12)),
    ],
)
def test_what_is_wrong_is_an_answer(explainer: Explainer, query: str, code: str, position: Position | None) -> None:
    found = explainer.validate(query)
    assert not found.valid
    assert found.problem is not None
    assert (found.problem.code, found.problem.position) == (code, position)
    assert found.problem.hint
    assert "valid" in tree_of(found)


@pytest.mark.parametrize(
    ("query", "warning"),
    [
        ("SELECT id FROM orders ORDER BY id", "ORDER BY (line 1, column 32) has no effect"),
        (
            "SELECT customer, MAX(amount) AS most, COUNT(*) AS n FROM orders GROUP BY customer",
            "MAX(amount): re-aggregates the touched groups",
        ),
        ("SELECT customer, SUM(x) AS s FROM orders GROUP BY customer", "SUM(x): adds up floating-point numbers"),
        (
            "SELECT n, COUNT(*) AS c FROM (SELECT customer, MIN(id) AS n FROM orders GROUP BY customer) GROUP BY n",
            "MIN(id): re-aggregates the touched groups",
        ),
    ],
)
def test_warnings(explainer: Explainer, query: str, warning: str) -> None:
    found = explainer.validate(query)
    assert found.explanation is not None
    assert [notice.text[: len(warning)] for notice in found.explanation.notices] == [warning]
    assert all(notice.hint for notice in found.explanation.notices)


def test_no_warning_where_sums_change_by_addition(explainer: Explainer) -> None:
    found = explainer.validate(BY_REGION)
    assert found.explanation is not None
    assert found.explanation.notices == ()


def test_the_rewrite(explainer: Explainer) -> None:
    found = explainer.rewrite(BY_REGION, every_step=False)
    names = [step.name for step in found.steps]
    assert names[:3] == ["text", "parse", "lower"]
    assert "push_filters" in names
    assert "keep by group, stored sums" in names
    pushed = next(step for step in found.steps if step.name == "push_filters")
    assert pushed.before is not None
    assert pushed.before != pushed.text
    whole = explainer.rewrite(BY_REGION, every_step=True)
    assert len(whole.steps) == len(found.steps) + found.left_out
    assert whole.left_out == 0
    assert any(not step.changed for step in whole.steps)
    assert f"-- {len(found.steps)}. " in text_of(found)


def test_the_rewrite_of_a_query_that_is_recomputed(explainer: Explainer) -> None:
    text = text_of(explainer.rewrite("SELECT * FROM orders ORDER BY id LIMIT 1 + 1", every_step=False))
    assert text.endswith(
        "recomputed in full: LIMIT that is not a number cannot be maintained differentially "
        "(line 1, column 34: LIMIT 1 + 1)"
    )


def test_the_delta(explainer: Explainer) -> None:
    found = explainer.delta(BY_REGION)
    assert [case.changed for case in found.cases] == [
        {"orders": "mixed"},
        {"customers": "mixed"},
        {"orders": "mixed", "customers": "mixed"},
        {"orders": "append", "customers": "append"},
    ]
    (statement,) = found.cases[0].statements
    assert set(statement.reads) == {"the change of orders", "customers now", "what is stored"}
    assert "customers before" in {read for each in found.cases[2].statements for read in each.reads}
    text = text_of(found)
    assert "-- orders: rows came and went\n" in text
    assert "Δ orders" in tree_of(found)


def test_the_delta_of_a_query_that_is_recomputed(explainer: Explainer) -> None:
    found = explainer.delta("SELECT * FROM orders ORDER BY id LIMIT 1 + 1")
    assert found.cases == ()
    assert text_of(found).endswith("-- so there is no maintenance statement")


def test_a_preview_refuses_what_a_creation_refuses(explainer: Explainer) -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        explainer.preview("SELECT * FROM orders ORDER BY id LIMIT 1 + 1", "DIFFERENTIAL", 5)
    assert caught.value.fragment == "LIMIT 1 + 1"
    with pytest.raises(VolatileFunction) as random:
        explainer.preview("SELECT * FROM orders TABLESAMPLE (10 PERCENT)", "AUTO", 5)
    assert random.value.fragment == "orders TABLESAMPLE (10 PERCENT)"
    with pytest.raises(InvalidArgument):
        explainer.preview(BY_REGION, "AUTO", -1)
    with pytest.raises(InvalidArgument):
        explainer.preview(BY_REGION, "SOMETIMES", 1)


def test_another_dialect(explainer: Explainer) -> None:
    query = (
        "SELECT customer,\n  id / customer AS share, MAX(amount) AS most FROM orders GROUP BY 1, 2 HAVING SUM(x) > 1"
    )
    found = explainer.validate(query, "postgres")
    assert found.explanation is not None
    assert "id DIV customer AS share" in found.explanation.query
    reason = found.explanation.reason
    assert reason is not None
    assert (reason.position, reason.fragment) == (Position(2, 80), "SUM(x) > 1")
    assert [step.name for step in explainer.rewrite(query, every_step=False, dialect="postgres").steps][:3] == [
        "text",
        "translate from postgres",
        "parse",
    ]
    bad = explainer.validate("SELECT id,\n  regexp_match(status, 'x') AS m FROM orders", "postgres").problem
    assert bad is not None
    assert (bad.code, bad.position, bad.fragment) == (
        "UnsupportedOperator",
        Position(2, 3),
        "regexp_match(status, 'x')",
    )
