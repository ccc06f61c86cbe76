"""Views that a query names: what they mean, where errors point, and what a fingerprint has of them."""

from __future__ import annotations

import pytest

from engine.compile.parse import Limits, parse
from engine.compile.pipeline import Request, compile_query
from engine.compile.plan import MaintenancePlan, replaced_views
from engine.errors import CycleDetected, NotFound, Position, QueryTooComplex, TrickleError, VolatileFunction
from engine.records import Column, ReasonCode, View
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.fake_lake import FakeLake, FakeStreamTable
from tests.support.multisets import same_rows

TABLES = {
    "orders": (Column("id", "int"), Column("customer", "string"), Column("cents", "int")),
    "people": (Column("name", "string"), Column("town", "string")),
}
LARGE = View("large", "SELECT id, customer, cents FROM orders WHERE cents > 100")
BY_TOWN = View(
    "By_Town",
    "WITH o AS (SELECT * FROM LARGE) SELECT p.town, SUM(o.cents) AS cents FROM o JOIN people p ON p.name = o.customer "
    "GROUP BY p.town",
)


def compiled(query: str, *views: View, **request: object) -> MaintenancePlan:
    return compile_query(Request(query, TABLES, views=views, **request), DuckAnalyzer(TABLES))  # type: ignore[arg-type]


def shown(query: str, *views: View) -> tuple[list, list]:
    """What a stream table of the query holds after two changes, and what the query would give."""
    plan = compiled(query, *views)
    lake = FakeLake(TABLES)
    lake.run("INSERT INTO orders VALUES (1, 'ann', 500), (2, 'bob', 50), (3, 'bob', 700)")
    lake.run("INSERT INTO people VALUES ('ann', 'Rome'), ('bob', 'Oslo')")
    table = FakeStreamTable(lake, plan)
    table.populate()
    lake.run("UPDATE orders SET cents = 300 WHERE id = 2; INSERT INTO orders VALUES (4, 'ann', 101)")
    table.refresh()
    lake.run("DELETE FROM people WHERE name = 'bob'; DELETE FROM orders WHERE id = 1")
    table.refresh()
    for view in views:
        lake.db.execute(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {view.query}")
    expected = lake.recompute(query, plan.visible)
    for view in reversed(views):
        lake.db.execute(f"DROP VIEW {view.name}")
    return table.visible(), expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT customer, COUNT(*) AS n FROM large GROUP BY customer",
        "SELECT l.id, large.cents FROM large, LARGE AS l WHERE l.id = large.id",
        "SELECT * FROM by_town",
        "SELECT t.town, l.id FROM by_town t JOIN large l ON l.cents <= t.cents",
        "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM large WHERE large.id = o.id)",
        "SELECT id, (SELECT SUM(cents) FROM large l WHERE l.customer = o.customer) AS s FROM orders o",
        # what the query calls by these names is its own business, and none of the view's
        "WITH orders AS (SELECT name AS customer FROM people) SELECT l.id FROM large l JOIN orders o USING (customer)",
        "WITH large AS (SELECT 7 AS id FROM orders) SELECT id FROM large",
        "WITH o AS (SELECT name FROM people) SELECT b.town, o.name FROM by_town b, o",
    ],
)
def test_a_view_means_its_text(query: str) -> None:
    stored, expected = shown(query, LARGE, BY_TOWN)
    assert expected
    assert same_rows(stored, expected)


def test_what_is_read_is_read_through_views() -> None:
    plan = compiled("SELECT * FROM by_town", LARGE, BY_TOWN)
    assert plan.sources == ("orders", "people")
    assert [name for name, _ in plan.views] == ["large", "By_Town"]
    assert compiled("SELECT id FROM orders", LARGE, BY_TOWN).views == ()
    assert parse("WITH large AS (SELECT 1 AS a) SELECT a FROM large", views=[LARGE]).views == ()


def test_another_text_is_another_fingerprint_that_tells_which_view() -> None:
    plan = compiled("SELECT * FROM by_town", LARGE, BY_TOWN)
    other = compiled("SELECT * FROM by_town", View("large", LARGE.query.replace("100", "200")), BY_TOWN)
    assert plan.fingerprint != other.fingerprint
    assert replaced_views(plan.fingerprint, other.views) == ("large",)
    assert replaced_views(plan.fingerprint, plan.views) == ()
    assert replaced_views(plan.fingerprint, ()) == ("by_town", "large")


def failing(query: str, *views: View, **request: object) -> TrickleError:
    with pytest.raises(TrickleError) as caught:
        compiled(query, *views, **request)
    return caught.value


def test_errors_point_into_the_text_that_the_user_wrote() -> None:
    error = failing("SELECT l.id\nFROM large l,\n  missing", LARGE)
    assert (type(error), error.position) == (NotFound, Position(3, 3))


def test_errors_inside_of_a_view_name_it() -> None:
    broken = View("broken", "SELECT id FROM\n  missing")
    error = failing("SELECT id\nFROM broken", broken)
    assert error.message.endswith("named missing (in the view broken, line 2, column 3)")
    assert error.position == Position(2, 6)
    syntax = failing("SELECT id FROM broken", View("broken", "SELECT id FROM FROM"))
    assert "in the view broken, line 1" in syntax.message
    error = failing("SELECT *\nFROM above", broken, View("above", "SELECT * FROM broken"))
    assert error.message.endswith("(in the view broken, line 2, column 3)")
    assert error.position == Position(2, 6)


def test_what_a_view_does_that_is_not_maintained_is_told_of_the_view() -> None:
    plan = compiled("SELECT id\nFROM sorted", View("sorted", "SELECT id FROM orders ORDER BY id LIMIT 1 + 1"))
    assert plan.full_reason is not None
    assert plan.full_reason.code is ReasonCode.UNSUPPORTED
    assert "in the view sorted, line 1" in plan.full_reason.text
    assert plan.full_reason.position == Position(2, 6)
    error = failing("SELECT id\nFROM chance", View("chance", "SELECT id, rand() AS r FROM orders"))
    assert isinstance(error, VolatileFunction)
    assert (error.position, "in the view chance, line 1, column 12" in error.message) == (Position(2, 6), True)


def test_the_clock_in_a_view_is_read_at_the_same_moment() -> None:
    from tests.unit.test_clock import MOMENT

    view = View("seen", "SELECT id, current_date() AS day FROM orders")
    plan = compiled("SELECT id, day, current_date() AS d FROM seen", view)
    assert plan.full_reason is not None
    assert plan.full_reason.text == "current_date reads the clock (in the view seen)"
    assert plan.replay is not None
    assert plan.replay.obstacle is None
    assert plan.query_at(MOMENT) == "SELECT id, day, DATE '2024-02-29' AS d FROM seen"
    assert plan.views_at(MOMENT) == (("seen", "SELECT id, DATE '2024-02-29' AS day FROM orders"),)


def test_circles_and_towers_are_refused() -> None:
    one, other = View("one", "SELECT * FROM other"), View("other", "SELECT * FROM one")
    error = failing("SELECT * FROM one", one, other)
    assert isinstance(error, CycleDetected)
    assert error.detail == "one → other → one"
    tower = [View("v0", "SELECT * FROM orders")]
    tower += [View(f"v{n}", f"SELECT a.* FROM v{n - 1} a JOIN v{n - 1} b ON a.id = b.id") for n in range(1, 30)]
    assert isinstance(failing("SELECT * FROM v29", *tower), QueryTooComplex)
    thin = [View("v0", "SELECT * FROM orders"), *(View(f"v{n}", f"SELECT * FROM v{n - 1}") for n in range(1, 70))]
    assert isinstance(failing("SELECT * FROM v69", *thin, limits=Limits(max_depth=20)), QueryTooComplex)
