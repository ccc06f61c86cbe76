"""Sources that are no Delta tables: files, databases, tables by name. They are looked at, and a copy is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from engine.engine import Engine
from engine.errors import AlreadyExists, InvalidArgument, NotFound, SourceDropped
from engine.lake import log
from engine.lake.session import SparkHost
from engine.records import CdcMode, Outcome
from tests.spark.shop import holds

pytestmark = pytest.mark.spark

SALES = pa.schema([("id", pa.int64()), ("region", pa.string()), ("cents", pa.int64())])
BY_REGION = "SELECT region, SUM(cents) AS cents, COUNT(*) AS sales FROM sales GROUP BY region"


def sales(*rows: tuple[int | None, str | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SALES.names, row, strict=True)) for row in rows], SALES)


@pytest.fixture
def engine(tmp_path: Path, spark_host: SparkHost) -> Any:
    Engine.init(tmp_path / "ws")
    with Engine.open(tmp_path / "ws", start_spark=True) as opened:
        opened.wait_for_spark(240)
        yield opened


def refreshed(engine: Engine, expected: Outcome) -> None:
    record = engine.refresh_stream_table("by_region")
    assert record.outcome is expected, record
    holds(engine, "by_region")


def test_a_folder_of_parquet(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    folder.mkdir()
    pq.write_table(sales((1, "a", 10), (2, "b", 20), (2, "b", 20), (None, None, 5)), folder / "one.parquet")
    made = engine.add_source("sales", folder, format="parquet")
    assert (made.source.cdc_mode, made.source.polled and made.source.polled.place) == (CdcMode.POLL, str(folder))
    engine.create_stream_table("by_region", BY_REGION, refresh_mode="DIFFERENTIAL")
    refreshed(engine, Outcome.NO_DATA)

    pq.write_table(sales((3, "a", 7)), folder / "two.parquet")
    refreshed(engine, Outcome.DIFFERENTIAL)
    assert engine.history("by_region", 1)[0].rows_in == 1
    pq.write_table(sales((1, "a", 11), (2, "b", 20)), folder / "one.parquet")
    refreshed(engine, Outcome.DIFFERENTIAL)
    assert engine.history("by_region", 1)[0].rows_in == 4  # (1, 10), (2, 20) and the nameless one went, (1, 11) came
    (folder / "two.parquet").unlink()
    refreshed(engine, Outcome.DIFFERENTIAL)
    pq.write_table(sales((1, "a", 11)), folder / "one.parquet")
    pq.write_table(sales((2, "b", 20)), folder / "three.parquet")
    refreshed(engine, Outcome.NO_DATA)  # other files, the same rows

    rows = engine.select("SELECT region, cents FROM by_region ORDER BY region").to_pylist()
    assert rows == [{"region": "a", "cents": 11}, {"region": "b", "cents": 20}]


def test_nobody_asks_spark_when_no_file_changed(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sales"
    folder.mkdir()
    pq.write_table(sales((1, "a", 10)), folder / "one.parquet")
    engine.add_source("sales", folder, format="parquet")
    engine.create_stream_table("by_region", BY_REGION)
    refreshed(engine, Outcome.NO_DATA)

    def refused(*_: object) -> None:
        raise AssertionError("Spark is asked")

    monkeypatch.setattr("engine.lake.compute.SparkCompute.wait_ready", refused)
    assert engine.refresh_stream_table("by_region").outcome is Outcome.NO_DATA


def test_who_only_reads_does_not_look(engine: Engine, tmp_path: Path) -> None:
    """Looking writes to the copy."""
    folder = tmp_path / "sales"
    folder.mkdir()
    pq.write_table(sales((1, "a", 10)), folder / "one.parquet")
    engine.add_source("sales", folder, format="parquet")
    pq.write_table(sales((2, "b", 20)), folder / "two.parquet")
    with Engine.open(tmp_path / "ws", read_only=True, start_spark=True) as reader:
        reader.wait_for_spark(240)
        assert reader.select("SELECT id FROM sales").to_pylist() == [{"id": 1}]
        assert reader.sources()[0].head == 1
    assert engine.select("SELECT COUNT(*) AS n FROM sales").to_pylist() == [{"n": 2}]


def test_columns_that_come_and_go(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    folder.mkdir()
    pq.write_table(sales((1, "a", 10)), folder / "one.parquet")
    engine.add_source("sales", folder, format="parquet")
    engine.create_stream_table("by_region", BY_REGION)
    wider = sales((1, "a", 10), (2, "b", 3)).append_column("note", pa.array(["x", None]))
    pq.write_table(wider, folder / "one.parquet")
    record = engine.refresh_stream_table("by_region")
    assert record.outcome in (Outcome.DIFFERENTIAL, Outcome.REINITIALIZE)
    holds(engine, "by_region")
    assert [column.name for column in engine.sources()[0].columns][-1] == "note"


@pytest.mark.parametrize("format", ["csv", "json"])
def test_text_is_read_with_the_columns_that_were_found_at_first(engine: Engine, tmp_path: Path, format: str) -> None:
    file = tmp_path / f"sales.{format}"

    def write(*rows: tuple[int | None, str | None, int | None]) -> None:
        table = sales(*rows)
        if format == "csv":
            pa_csv.write_csv(table, file)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))

    write((1, "a", 10), (2, "b", 20))
    status = engine.add_source("sales", file, format=format)
    # only few values are seen by whoever guesses types
    assert {column.name for column in status.columns} == {"id", "region", "cents"}
    engine.create_stream_table("by_region", BY_REGION, refresh_mode="DIFFERENTIAL")
    write((1, "a", 10), (2, "b", 21), (3, "c, d", 1))
    refreshed(engine, Outcome.DIFFERENTIAL)
    write()
    refreshed(engine, Outcome.DIFFERENTIAL)
    assert engine.select("SELECT * FROM by_region").num_rows == 0


def test_options_and_odd_names(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "odd.csv"
    file.write_text("the id;a,b\n1;x\n2;y\n")
    engine.add_source("odd", file, format="csv", options={"sep": ";"})
    engine.create_stream_table("kept", "SELECT `the id` AS id, `a,b` AS ab FROM odd", refresh_mode="DIFFERENTIAL")
    file.write_text("the id;a,b\n1;x\n3;z\n")
    assert engine.refresh_stream_table("kept").outcome is Outcome.DIFFERENTIAL
    holds(engine, "kept")
    assert engine.select("SELECT * FROM kept ORDER BY id").to_pylist() == [{"id": 1, "ab": "x"}, {"id": 3, "ab": "z"}]


def test_a_database(engine: Engine, tmp_path: Path) -> None:
    """Derby, which Spark brings along."""
    url = f"jdbc:derby:{tmp_path / 'db'};create=true"
    jvm = engine._host.session()._jvm
    connection = jvm.java.sql.DriverManager.getConnection(url)

    def run(statement: str) -> None:
        connection.createStatement().execute(statement)

    run("CREATE TABLE sales (id BIGINT, region VARCHAR(10), cents BIGINT)")
    run("INSERT INTO sales VALUES (1, 'a', 10), (2, 'b', 20)")
    engine.add_source("sales", url, format="jdbc", options={"dbtable": "sales"})
    engine.create_stream_table("by_region", BY_REGION, refresh_mode="DIFFERENTIAL")
    run("UPDATE sales SET cents = 12 WHERE id = 1")
    refreshed(engine, Outcome.NO_DATA)  # it was looked at a moment ago
    engine._core.refresher.polls._looked_at_s.clear()
    refreshed(engine, Outcome.DIFFERENTIAL)
    assert engine.history("by_region", 1)[0].rows_in == 2
    connection.close()


def test_a_table_by_name(engine: Engine) -> None:
    session = engine._host.session()
    first = "SELECT * FROM VALUES (1L, 'a', 10L), (2L, 'b', 20L) AS t(id, region, cents)"
    session.sql(first).createOrReplaceGlobalTempView("sales_elsewhere")
    engine.add_source("sales", "global_temp.sales_elsewhere", format="table")
    engine.create_stream_table("by_region", BY_REGION, refresh_mode="DIFFERENTIAL")
    session.sql("SELECT 1L AS id, 'a' AS region, 11L AS cents").createOrReplaceGlobalTempView("sales_elsewhere")
    engine._core.refresher.polls._looked_at_s.clear()
    refreshed(engine, Outcome.DIFFERENTIAL)
    session.catalog.dropGlobalTempView("sales_elsewhere")


def test_what_cannot_be_polled(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "sales"
    folder.mkdir()
    pq.write_table(sales((1, "a", 10)), folder / "one.parquet")
    with pytest.raises(InvalidArgument, match="can only be polled"):
        engine.add_source("sales", folder, format="parquet", cdc_mode="cdf")
    with pytest.raises(InvalidArgument, match="no column nope"):
        engine.add_source("sales", folder, format="parquet", key=("nope",))
    with pytest.raises(NotFound, match="nothing is at"):
        engine.add_source("sales", tmp_path / "nowhere", format="parquet")
    with pytest.raises(InvalidArgument, match="as no_such_format"):
        engine.add_source("sales", folder, format="no_such_format")
    assert engine.sources() == ()
    assert list((tmp_path / "ws" / ".trickle").glob("polled/*")) == []

    engine.add_source("sales", folder, format="parquet")
    with pytest.raises(AlreadyExists):
        engine.add_source("SALES", folder, format="parquet")
    with pytest.raises(InvalidArgument, match="polled"):
        engine.change_source("DELETE FROM sales")
    engine.create_stream_table("by_region", BY_REGION)
    pq.write_table(sales((1, "a", 10), (2, "b", 1)), folder / "one.parquet")
    assert engine.select("SELECT COUNT(*) AS n FROM sales").to_pylist() == [{"n": 2}]
    (folder / "one.parquet").unlink()
    folder.rmdir()
    with pytest.raises(SourceDropped) as caught:
        engine.refresh_stream_table("by_region")
    assert caught.value.hint
    engine.drop_stream_table("by_region")
    assert engine.drop_source("sales")
    assert list((tmp_path / "ws" / ".trickle").glob("polled/*")) == []


def test_only_what_differs_is_committed(engine: Engine, tmp_path: Path) -> None:
    """Rows have no key: of three that are the same two go, and of two zeros the negative one."""
    file = tmp_path / "odd.parquet"
    same = [(7, 1.5, "three times")] * 3
    many = [(n, float(n), f"row {n}") for n in range(100, 160)]
    zeros = [(1, 0.0, "zero"), (1, -0.0, "zero"), (2, float("nan"), None), (3, None, "x"), (None, None, None)]

    def write(rows: list[tuple[int | None, float | None, str | None]]) -> None:
        columns = [list(column) for column in zip(*rows, strict=True)]
        types = (pa.int64(), pa.float64(), pa.string())
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
        pq.write_table(pa.table(arrays, names=["id", "the value", "t"]), file)

    def copied() -> list[str]:
        rows = engine.select("SELECT id, `the value`, t FROM odd").to_pylist()
        return sorted(repr(tuple(row.values())) for row in rows)

    write([*same, *many, *zeros])
    copy = engine.add_source("odd", file, format="parquet").source.path
    engine.create_stream_table("kept", "SELECT id, `the value` AS v, t FROM odd", refresh_mode="DIFFERENTIAL")
    for rows, operation, changed in (
        ([same[0], *many, *(zero for zero in zeros if repr(zero[1]) != "-0.0")], "MERGE", 3),
        ([same[0], *many, zeros[0], zeros[2], zeros[2], zeros[3], (4, 0.5, "new")], "MERGE", 3),
        ([*many[:10], (4, 0.5, "new")], "WRITE", None),
    ):
        write(rows)
        record = engine.refresh_stream_table("kept")
        assert record.outcome is Outcome.DIFFERENTIAL
        assert changed is None or record.rows_in == changed
        assert copied() == sorted(map(repr, rows))
        holds(engine, "kept")
        said = log.commit_info(copy, log.newest_version(copy))
        assert said is not None
        assert said.operation == operation
        if operation == "MERGE":
            assert int(said.metrics["numTargetRowsCopied"]) == 0, "no file is rewritten"
