"""Sources as nobody expects them: names, layouts, values, and ends. They are right, or say what is wrong."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import NotFound, RefreshFailed, SourceDropped, SourceError, TrickleError
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import quoting
from engine.lake.session import SparkHost
from engine.records import Outcome, State
from tests.spark.shop import PAID, Shop, holds, opened, order

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Odd:
    columns: str
    #: before, and what comes
    rows: tuple[str, ...]
    more: tuple[str, ...]
    #: of rows that go, and of an update
    delete: str
    update: str
    queries: tuple[str, ...]
    by: str = ""
    properties: str = ""


MAPPED = ", 'delta.columnMapping.mode'='name'"
VECTORS = ", 'delta.enableDeletionVectors'='true'"
NAMES = ("a b", "a.b", "it's", 'say "x"', "it is", "größe🙂", "select", "a,b;c{d}(e)=f", "x\ty", "GROUP")
MANY = 500

ODD: dict[str, Odd] = {
    "names": Odd(
        ", ".join(f"{quoting.name(name)} INT" for name in NAMES),
        tuple(f"({', '.join(str(n * 10 + k) for k in range(len(NAMES)))})" for n in range(4)),
        (f"({', '.join(str(90 + k) for k in range(len(NAMES)))})",),
        "`a b` = 10",
        "`a.b` = `a.b` + 1, `select` = NULL WHERE `it is` > 20",
        (
            f"SELECT {', '.join(f'{quoting.name(name)} AS c{n}' for n, name in enumerate(NAMES))} FROM src",
            "SELECT `a.b` % 3 AS `größe🙂`, COUNT(`select`) AS `select`, SUM(`it is`) AS `it's` FROM src GROUP BY 1",
            'SELECT s.`a.b`, o.`a b` AS other FROM src s LEFT JOIN src o ON s.`say "x"` = o.`größe🙂` + 2',
        ),
        properties=MAPPED,
    ),
    # Delta updates and deletes nothing where such a name is (4.4)
    "a backtick in a name": Odd(
        "`tick``tick` INT, `b` INT",
        ("(1, 2)", "(3, 4)"),
        ("(5, 6)", "(1, 6)"),
        "",
        "",
        ("SELECT * FROM src", "SELECT `tick``tick` AS `back``tick`, SUM(b) AS s FROM src GROUP BY 1"),
        properties=MAPPED,
    ),
    "500 columns": Odd(
        ", ".join(f"c{n} INT" for n in range(MANY)),
        tuple(f"({', '.join(str(row * n % 7) for n in range(MANY))})" for row in range(3)),
        (f"({', '.join(str(n % 5) for n in range(MANY))})",),
        "c3 = 3",
        "c499 = -1 WHERE c2 = 4",
        ("SELECT * FROM src", "SELECT c7, SUM(c499) AS s, MAX(c250) AS m FROM src GROUP BY c7"),
    ),
    "partitioned": Odd(
        "id INT, part STRING, day DATE, v INT",
        ("(1, 'a b', DATE'2024-01-01', 1)", "(2, NULL, DATE'2024-01-02', 2)", "(3, 'x/y=%', NULL, 3)"),
        ("(4, 'ü', DATE'2024-01-01', 4)", "(5, 'a b', NULL, 5)"),
        "part = 'x/y=%'",
        "v = v + 10, part = 'moved' WHERE id = 2",
        ("SELECT * FROM src", "SELECT part, day, SUM(v) AS v FROM src GROUP BY part, day"),
        by="PARTITIONED BY (part, day)",
    ),
    "liquid clustered": Odd(
        "id INT, part STRING, v INT",
        ("(1, 'a', 1)", "(2, 'b', 2)", "(3, NULL, 3)"),
        ("(4, 'a', 4)",),
        "id = 1",
        "v = v + 10 WHERE id = 2",
        ("SELECT * FROM src", "SELECT part, SUM(v) AS v FROM src GROUP BY part"),
        by="CLUSTER BY (part)",
    ),
    "mapped with deletion vectors": Odd(
        "id INT, `the part` STRING, v INT",
        tuple(f"({n}, 'p{n % 3}', {n})" for n in range(20)),
        ("(99, NULL, 4)",),
        "id % 7 = 1",
        "v = v + 10 WHERE id % 5 = 2",
        ("SELECT `the part` AS part, v FROM src", "SELECT `the part` AS p, SUM(v) AS v FROM src GROUP BY 1"),
        properties=MAPPED + VECTORS,
    ),
    "the first and the last moment": Odd(
        "id INT, at TIMESTAMP, day DATE",
        (
            "(1, TIMESTAMP'0001-01-01 00:00:00', DATE'0001-01-01')",
            "(2, TIMESTAMP'9999-12-31 23:59:59.999999', DATE'9999-12-31')",
            "(3, TIMESTAMP'1582-10-04 12:00:00', DATE'1582-10-04')",
        ),
        ("(4, TIMESTAMP'0001-01-01 00:00:00.000001', DATE'1900-01-01')", "(5, NULL, NULL)"),
        "id = 3",
        "at = TIMESTAMP'9999-12-31 23:59:59.999998' WHERE id = 2",
        ("SELECT * FROM src", "SELECT day, MIN(at) AS first, MAX(at) AS last, COUNT(*) AS n FROM src GROUP BY day"),
    ),
    "floating point": Odd(
        "id INT, x DOUBLE, f FLOAT",
        (
            "(1, 0.0D, FLOAT('nan'))",
            "(2, -0.0D, FLOAT('-infinity'))",
            "(3, DOUBLE('nan'), 0.0F)",
            "(4, DOUBLE('infinity'), -0.0F)",
            "(5, 1e20D, 1.5F)",
        ),
        ("(6, DOUBLE('nan'), FLOAT('nan'))", "(7, -0.0D, NULL)", "(8, 1D, 2.5F)"),
        "id IN (4, 5)",
        "x = 0.0D WHERE id = 2",
        (
            "SELECT * FROM src",
            "SELECT x, COUNT(*) AS n, COUNT(f) AS f FROM src GROUP BY x",
            "SELECT id % 2 AS odd, SUM(x) AS s, MAX(f) AS m FROM src GROUP BY 1",
        ),
    ),
    "long and strange texts": Odd(
        "id INT, t STRING, b BINARY",
        (
            "(1, 'it''s \"quoted\"', X'00FF')",
            "(2, 'line\\nbreak\\r\\n\\ttab', X'')",
            "(3, 'nul\\0inside', NULL)",
            "(4, repeat('ü', 500000), CAST(repeat('x', 1000000) AS BINARY))",
            "(5, '', X'0A')",
        ),
        ("(6, 'nul\\0inside', X'00')", "(7, concat(repeat('y', 1000000), 'z'), NULL)"),
        "id = 4",
        "t = concat(t, '\\0') WHERE id = 3",
        ("SELECT * FROM src", "SELECT t, COUNT(*) AS n FROM src GROUP BY t", "SELECT id FROM src WHERE t LIKE 'nul%'"),
    ),
    "nothing in it": Odd(
        "id INT, v INT",
        (),
        ("(1, 1)",),
        "id = 1",
        "v = 2",
        (
            "SELECT * FROM src",
            "SELECT COUNT(*) AS n, SUM(v) AS v FROM src",
            "SELECT id, v FROM src ORDER BY v DESC LIMIT 2",
            "SELECT id, row_number() OVER (ORDER BY v) AS nth FROM src",
        ),
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("cdf", [True, False], ids=["feed", "files"])
def test_it_is_maintained(tmp_path: Path, spark_host: SparkHost, name: str, cdf: bool) -> None:
    odd, spark, path = ODD[name], spark_host.session(), tmp_path / "src"
    table = f"delta.`{path}`"
    properties = f"'delta.enableChangeDataFeed'='{str(cdf).lower()}'{odd.properties}"
    spark.sql(f"CREATE TABLE {table} ({odd.columns}) USING delta {odd.by} TBLPROPERTIES ({properties})")
    if odd.rows:
        spark.sql(f"INSERT INTO {table} VALUES {', '.join(odd.rows)}")
    Engine.init(tmp_path / "ws")
    with Engine.open(tmp_path / "ws", start_spark=True) as engine:
        engine.wait_for_spark(240)
        engine.add_source("src", path)
        tables = [f"st{number}" for number in range(len(odd.queries))]
        for st, query in zip(tables, odd.queries, strict=True):
            engine.create_stream_table(st, query, refresh_mode="DIFFERENTIAL", enable_cdf=False)
        for statements in (
            (f"INSERT INTO {table} VALUES {', '.join(odd.more)}",),
            (f"UPDATE {table} SET {odd.update}", f"DELETE FROM {table} WHERE {odd.delete}") if odd.update else (),
        ):
            for statement in statements:
                spark.sql(statement)
            for st in tables:
                done = engine.refresh_stream_table(st).outcome
                assert done is (Outcome.DIFFERENTIAL if statements else Outcome.NO_DATA)
                holds(engine, st)


def test_a_sum_that_no_longer_fits(tmp_path: Path, spark_host: SparkHost) -> None:
    """It fails as the query would, changes nothing, and goes on when the rows are gone."""
    spark, path = spark_host.session(), tmp_path / "src"
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} (id INT, d DECIMAL(38,0)) USING delta")
    spark.sql(f"INSERT INTO {table} VALUES (1, 5), (1, 6)")
    Engine.init(tmp_path / "ws")
    with Engine.open(tmp_path / "ws", start_spark=True) as engine:
        engine.wait_for_spark(240)
        engine.add_source("src", path)
        engine.create_stream_table("total", "SELECT id, SUM(d) AS d FROM src GROUP BY id", enable_cdf=False)
        nines = "9" * 38
        spark.sql(f"INSERT INTO {table} VALUES (1, {nines}), (1, {nines})")
        before = engine.preview("total").to_pylist()
        with pytest.raises(TrickleError) as caught:
            engine.refresh_stream_table("total")
        assert isinstance(caught.value, RefreshFailed)
        assert engine.preview("total").to_pylist() == before
        spark.sql(f"DELETE FROM {table} WHERE d > 100")
        engine.refresh_stream_table("total")
        holds(engine, "total")


@pytest.mark.parametrize(
    "point", [Failpoint.SOURCES_CHOSEN, Failpoint.CHANGES_SUMMED_UP, Failpoint.CHANGES_READ, Failpoint.COMPUTED]
)
def test_a_source_that_goes_while_it_is_read(
    tmp_path: Path, spark_host: SparkHost, shop: Shop, point: Failpoint
) -> None:
    """A typed error or a right answer, and afterwards as if nothing had been."""
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        shop.insert("orders", order(90, 3, 500))
        aside = tmp_path / "aside"

        def away(passed: Failpoint) -> None:
            if passed is point and not aside.exists():
                shutil.move(shop.path("orders"), aside)

        with FAILPOINTS.armed() as points:
            points.on_pass = away
            failed = _failure(engine, "paid")
        assert failed is None or isinstance(failed, SourceError | RefreshFailed | NotFound), repr(failed)
        assert failed is None or failed.hint or failed.detail
        with pytest.raises(SourceDropped):
            engine.refresh_stream_table("paid")
        shutil.move(aside, shop.path("orders"))
        engine.refresh_stream_table("paid")
        assert engine.status("paid").state is State.FRESH
        holds(engine, "paid")


def _failure(engine: Engine, name: str) -> TrickleError | None:
    try:
        engine.refresh_stream_table(name)
    except TrickleError as error:
        return error
    return None


def test_a_clock_that_goes_back(tmp_path: Path, spark_host: SparkHost, shop: Shop) -> None:
    """Commits are told apart by their versions and identities; their times are only told."""
    with opened(tmp_path / "ws", shop) as engine:
        engine.create_stream_table("paid", PAID)
        for number, at in enumerate(("2031-01-01", "1999-01-01", "1970-01-02")):
            shop.insert("orders", order(90 + number, 3, 500))
            _dated(Path(shop.path("orders")), at)
            assert engine.refresh_stream_table("paid").outcome is Outcome.DIFFERENTIAL
            assert engine.refresh_stream_table("paid").outcome is Outcome.NO_DATA
            holds(engine, "paid")
        shop.insert("orders", order(99, 3, 500))
        _dated(Path(shop.path("orders")), "2031-01-01")
        (waiting,) = (each for each in engine.cdc_status() if each.stream_table == "paid")
        assert (waiting.pending_versions, waiting.oldest_pending_age_s) == (1, 0.0)


def _dated(table: Path, at: str) -> None:
    """The newest commit says that it was made then, and so does its file."""
    import json
    import os
    from datetime import UTC, datetime

    newest = max((table / "_delta_log").glob("*.json"))
    moment_s = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = int(moment_s * 1000)
    newest.write_text("".join(json.dumps(action) + "\n" for action in actions))
    os.utime(newest, (moment_s, moment_s))
