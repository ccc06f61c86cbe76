"""What others do to the columns of a source: it goes on, or it stops and says so, and never means something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import SourceReplaced, SourceSchemaChanged, TrickleError
from engine.event_records import EventKind
from engine.lake.session import SparkHost
from engine.records import Outcome, ReasonCode, State
from tests.spark.shop import holds

pytestmark = pytest.mark.spark

STAR = "SELECT * FROM items"
NAMED = "SELECT kind, SUM(n) AS n, COUNT(*) AS items FROM items GROUP BY kind"
NATURAL = "SELECT id, n, label FROM items NATURAL JOIN kinds"
QUERIES = {"star": STAR, "named": NAMED, "natural": NATURAL}

MAPPED = ", 'delta.columnMapping.mode'='name', 'delta.enableTypeWidening'='true'"


class Lake:
    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder, self.spark = folder, spark
        self.make("items", "id INT, kind INT, n INT, note STRING")
        self.sql("INSERT INTO {items} VALUES (1, 1, 10, 'a'), (2, 2, 20, 'b'), (3, 2, 30, NULL)")
        self.make("kinds", "kind INT, label STRING")
        self.sql("INSERT INTO {kinds} VALUES (1, 'one'), (2, 'two')")

    def make(self, name: str, columns: str, how: str = "CREATE TABLE") -> None:
        properties = f"'delta.enableChangeDataFeed'='true'{MAPPED}"
        self.sql(f"{how} {{{name}}} ({columns}) USING delta TBLPROPERTIES ({properties})")

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(**{name: f"delta.`{self.folder / name}`" for name in ("items", "kinds")}))


@pytest.fixture
def lake(tmp_path: Path, spark_host: SparkHost) -> Lake:
    return Lake(tmp_path, spark_host.session())


def opened(lake: Lake, **overrides: str) -> Engine:
    folder = lake.folder / "ws"
    if not folder.exists():
        Engine.init(folder)
    keys = {key.replace("__", "."): value for key, value in overrides.items()}
    engine = Engine.open(folder, overrides=keys, start_spark=True)
    engine.wait_for_spark(240)
    return engine


def made(engine: Engine, lake: Lake) -> None:
    for name in ("items", "kinds"):
        engine.add_source(name, lake.folder / name)
    for name, query in QUERIES.items():
        engine.create_stream_table(name, query)


def events(engine: Engine, name: str, kind: EventKind) -> list[str]:
    return [each.text for each in engine.events() if each.kind is kind and each.subject == name]


GOES_ON = "goes on"
STOPS = "stops"

#: what somebody does, the columns of a row afterwards, and what becomes of the three
CASES: dict[str, tuple[tuple[str, ...], str, dict[str, str]]] = {
    "a column comes": (
        ("ALTER TABLE {items} ADD COLUMN more INT",),
        "(4, 1, 5, 'c', 9)",
        {"star": GOES_ON, "named": GOES_ON, "natural": GOES_ON},
    ),
    "a column comes that a join would take": (
        ("ALTER TABLE {items} ADD COLUMN label STRING",),
        "(4, 1, 5, 'c', 'nobody')",
        {"star": GOES_ON, "named": GOES_ON, "natural": STOPS},
    ),
    "a column goes": (
        ("ALTER TABLE {items} DROP COLUMN note",),
        "(4, 1, 5)",
        {"star": STOPS, "named": GOES_ON, "natural": GOES_ON},
    ),
    "a used column goes": (
        ("ALTER TABLE {items} DROP COLUMN n",),
        "(4, 1, 'c')",
        {"star": STOPS, "named": STOPS, "natural": STOPS},
    ),
    "a column is renamed": (
        ("ALTER TABLE {items} RENAME COLUMN note TO remark",),
        "(4, 1, 5, 'c')",
        {"star": STOPS, "named": GOES_ON, "natural": GOES_ON},
    ),
    "a used column is renamed": (
        ("ALTER TABLE {items} RENAME COLUMN n TO m",),
        "(4, 1, 5, 'c')",
        {"star": STOPS, "named": STOPS, "natural": STOPS},
    ),
    "a used column is widened": (
        ("ALTER TABLE {items} ALTER COLUMN n TYPE BIGINT",),
        "(4, 1, 5000000000, 'c')",
        {"star": STOPS, "named": STOPS, "natural": STOPS},
    ),
    "a key is widened that two of them use": (
        ("ALTER TABLE {items} ALTER COLUMN id TYPE BIGINT",),
        "(4, 1, 5, 'c')",
        {"star": STOPS, "named": GOES_ON, "natural": STOPS},
    ),
    "the feed is switched off": (
        ("ALTER TABLE {items} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",),
        "(4, 1, 5, 'c')",
        {"star": GOES_ON, "named": GOES_ON, "natural": GOES_ON},
    ),
    "it is restored": (
        ("INSERT INTO {items} VALUES (9, 1, 1, 'x')", "RESTORE TABLE {items} TO VERSION AS OF 1"),
        "(4, 1, 5, 'c')",
        {"star": GOES_ON, "named": GOES_ON, "natural": GOES_ON},
    ),
}


def done_to(lake: Lake, case: str) -> dict[str, str]:
    statements, row, expected = CASES[case]
    for statement in statements:
        lake.sql(statement)
    lake.sql(f"INSERT INTO {{items}} VALUES {row}")
    lake.sql("DELETE FROM {items} WHERE id = 2")
    return expected


@pytest.mark.parametrize("case", CASES)
def test_it_goes_on_or_stops(lake: Lake, case: str) -> None:
    with opened(lake) as engine:
        made(engine, lake)
        expected = done_to(lake, case)
        for name, what in expected.items():
            before = [column.name for column in engine.stream_table(name).columns]
            if what == GOES_ON:
                record = engine.refresh_stream_table(name)
                assert record.outcome is Outcome.DIFFERENTIAL, record
                holds(engine, name)
                assert [column.name for column in engine.stream_table(name).columns] == before
                continue
            with pytest.raises(SourceSchemaChanged) as caught:
                engine.refresh_stream_table(name)
            assert f"trickle resume {name}" in (caught.value.hint or "")
            assert engine.status(name).state is State.SUSPENDED
            assert events(engine, name, EventKind.SOURCE_SCHEMA_CHANGED)
            # the way out, where the text still means something
            if case in ("a used column goes", "a used column is renamed") and name != "star":
                with pytest.raises(SourceSchemaChanged):
                    engine.refresh_stream_table(name, full=True)
            else:
                engine.refresh_stream_table(name, full=True)
                assert engine.status(name).state is State.FRESH
                holds(engine, name)
                lake.sql("DELETE FROM {items} WHERE id = 1")
                assert engine.refresh_stream_table(name).outcome is not Outcome.FULL
                holds(engine, name)
        if case == "the feed is switched off":
            assert any("told by its files" in each for each in events(engine, "star", EventKind.CDC_MODE_CHANGED))
        if case == "a column comes":
            assert any("more" in each for each in events(engine, "star", EventKind.SOURCE_SCHEMA_CHANGED))
            assert not events(engine, "named", EventKind.SOURCE_SCHEMA_CHANGED)


@pytest.mark.parametrize("case", ["a column comes that a join would take", "a column goes", "a used column is widened"])
def test_who_does_not_want_to_be_stopped_gets_it_rebuilt(lake: Lake, case: str) -> None:
    with opened(lake, sources__block_source_ddl="false") as engine:
        made(engine, lake)
        for name, what in done_to(lake, case).items():
            record = engine.refresh_stream_table(name)
            if what == STOPS:
                assert (record.outcome, record.reason.code) == (Outcome.REINITIALIZE, ReasonCode.SOURCE_SCHEMA_CHANGED)
                assert events(engine, name, EventKind.SOURCE_SCHEMA_CHANGED)
            holds(engine, name)
            assert engine.refresh_stream_table(name).outcome is Outcome.NO_DATA


def test_a_used_column_that_goes_stops_in_any_case(lake: Lake) -> None:
    with opened(lake, sources__block_source_ddl="false") as engine:
        made(engine, lake)
        done_to(lake, "a used column goes")
        with pytest.raises(SourceSchemaChanged, match="no longer fits"):
            engine.refresh_stream_table("named")
        assert engine.status("named").state is State.SUSPENDED
        # it comes back
        lake.sql("ALTER TABLE {items} ADD COLUMN n INT")
        assert engine.refresh_stream_table("named").outcome is Outcome.REINITIALIZE  # another column under its name
        holds(engine, "named")


@pytest.mark.parametrize("columns", ["id INT, kind INT, n INT, note STRING", "id INT, kind INT, n BIGINT"])
def test_a_table_in_the_place_of_another(lake: Lake, columns: str) -> None:
    import shutil

    with opened(lake) as engine:
        made(engine, lake)
        shutil.rmtree(lake.folder / "items")
        lake.make("items", columns)
        lake.sql("INSERT INTO {items} (id, kind, n) VALUES (7, 1, 5)")
        with pytest.raises(SourceReplaced) as caught:
            engine.refresh_stream_table("named")
        assert "--full" in (caught.value.hint or "")
        assert engine.status("named").state is State.SUSPENDED
        assert events(engine, "named", EventKind.SOURCE_SCHEMA_CHANGED)
        engine.refresh_stream_table("named", full=True)
        holds(engine, "named")
    with opened(lake, sources__block_source_ddl="false") as engine:
        record = engine.refresh_stream_table("star")
        assert (record.outcome, record.reason.code) == (Outcome.REINITIALIZE, ReasonCode.SOURCE_REPLACED)
        holds(engine, "star")


def test_the_same_query_written_anew_takes_new_columns_in(lake: Lake) -> None:
    with opened(lake) as engine:
        made(engine, lake)
        lake.sql("ALTER TABLE {items} ADD COLUMN more INT")
        lake.sql("INSERT INTO {items} VALUES (4, 1, 5, 'c', 9)")
        engine.refresh_stream_table("star", full=True)
        assert len(engine.stream_table("star").columns) == 4
        engine.alter_stream_table("star", refresh_mode="FULL")
        engine.alter_stream_table("star", refresh_mode="AUTO")
        assert len(engine.stream_table("star").columns) == 4
        engine.alter_stream_table("star", query=STAR)
        assert [column.name for column in engine.stream_table("star").columns][-1] == "more"
        holds(engine, "star")


def test_the_table_says_which_columns_it_knows(lake: Lake) -> None:
    """Found again without its catalog, it stands for the columns of then."""
    with opened(lake) as engine:
        made(engine, lake)
        catalog = engine.workspace.catalog_file
    lake.sql("ALTER TABLE {items} ADD COLUMN more INT")
    for file in catalog.parent.glob("catalog.db*"):
        file.unlink()
    with opened(lake) as engine:
        engine.repair()
        lake.sql("INSERT INTO {items} VALUES (4, 1, 5, 'c', 9)")
        assert engine.refresh_stream_table("star").outcome is Outcome.DIFFERENTIAL
        holds(engine, "star")
        with pytest.raises(TrickleError):
            engine.select("SELECT more FROM star")
        # what it took over later it says, too
        lake.sql("ALTER TABLE {items} ALTER COLUMN n TYPE BIGINT")
        engine.refresh_stream_table("star", full=True)
    for file in catalog.parent.glob("catalog.db*"):
        file.unlink()
    with opened(lake) as engine:
        engine.repair()
        lake.sql("DELETE FROM {items} WHERE id = 1")
        assert engine.refresh_stream_table("star").outcome is Outcome.DIFFERENTIAL
        holds(engine, "star")
