"""What the simulated lives stand on: DuckDB in Spark's place does what Spark does, seen through the same interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from engine.errors import CommitConflict, NegativeMultiplicity, Tampered
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.lake import commits, log, stamp
from engine.lake.apply import OPERATION, Counts
from engine.lake.compute import Compute, RowIds, SparkCompute
from engine.lake.session import SparkHost
from engine.lake.stamp import Stamp
from engine.lake.steps import Query
from engine.records import Column, Outcome, SourceVersion
from tests.faults.witness import left_by_full_refreshes
from tests.support.delta_files import SourceTable
from tests.support.duck_compute import DuckCompute

COLUMNS = (Column("k", "bigint"), Column("v", "string"))
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])
KEPT = (*COLUMNS, Column("__trickle_sequence", "bigint"), Column("__trickle_position", "bigint"))
IDS = RowIds("__trickle_sequence", "__trickle_position", 7)

Shown = Callable[[str], Counter[tuple[object, ...]]]


@pytest.fixture(params=["duckdb", "spark"])
def compute(request: pytest.FixtureRequest) -> Compute:
    if request.param == "duckdb":
        return DuckCompute({})
    return SparkCompute(request.getfixturevalue("spark_host"))


@pytest.fixture
def st(tmp_path: Path, spark_host: SparkHost) -> str:
    """A stream table of three rows, made as the engine makes them."""
    path = str(tmp_path / "it's a st")
    compute = SparkCompute(spark_host)
    storage = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    compute.create_table(path, COLUMNS, storage, "")
    write_deltalake(path, rows((1, "a"), (2, None), (None, "c")), mode="append")
    return path


def rows(*values: tuple[object, ...], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema)


def change_set(*values: tuple[object, ...]) -> pa.Table:
    return rows(*values, schema=pa.schema([(OPERATION, pa.string()), *SCHEMA]))


def shown(compute: Compute, view: str) -> Counter[tuple[object, ...]]:
    found = compute.collect(Query(f"SELECT * FROM {view}", reads=frozenset((view,))), "looking", small=True)
    return Counter(tuple(row.values()) for row in found.to_pylist())


def stored(path: str) -> Counter[tuple[object, ...]]:
    found = pa.table(QueryBuilder().register("t", DeltaTable(path)).execute("SELECT k, v FROM t").read_all())
    return Counter(tuple(row.values()) for row in found.to_pylist())


def said(path: str, sequence: int, refresh_id: str = "r") -> Stamp:
    frontier = {"orders": SourceVersion(7, "abc", "id-1")}
    fitting = f"{refresh_id}{sequence}"
    return Stamp("st", fitting, sequence, Outcome.DIFFERENTIAL, frontier, frontier, "fp", 1, log.newest_version(path))


# ---------------------------------------------------------------- what statements read


def test_versions_and_changes_are_the_same_rows(compute: Compute, tmp_path: Path) -> None:
    source = SourceTable(tmp_path / "source", COLUMNS)
    source.append(rows((1, "a"), (1, "a"), (2, None)))
    source.append(rows((3, "c")))
    types = [("_change_type", pa.string())]
    # 1 goes once of twice, 3 goes and comes back, 4 comes
    told = rows(
        (1, "a", "delete"),
        (3, "c", "delete"),
        (3, "c", "insert"),
        (4, None, "insert"),
        schema=pa.schema([*SCHEMA, *types]),
    )
    source.change(changes=told, all_rows=rows((1, "a"), (2, None), (3, "c"), (4, None)))
    path = str(source.path)
    compute.show_version("before", path, 2, COLUMNS)
    compute.show_version("after", path, 3, COLUMNS)
    assert shown(compute, "before") == Counter({(1, "a"): 2, (2, None): 1, (3, "c"): 1})
    assert shown(compute, "after") == Counter([(1, "a"), (2, None), (3, "c"), (4, None)])
    counted = compute.show_change("change", path, ["k", "v"], commits.summarise(path, 2, 3), 1_000)
    assert counted == 2
    assert shown(compute, "change") == Counter([(1, "a", -1), (4, None, 1)])
    compute.show_before("before_again", "after", "change", COLUMNS)
    assert shown(compute, "before_again") == shown(compute, "before")
    compute.show_empty("nothing", COLUMNS)
    assert shown(compute, "nothing") == Counter()


def test_rows_that_are_handed_over_keep_their_types(compute: Compute) -> None:
    moments = pa.schema([("here", pa.timestamp("us")), ("there", pa.timestamp("us", "UTC"))])
    compute.show_rows("moments", rows((None, None), schema=moments))
    found = compute.collect(Query("SELECT here, there FROM moments"), "looking", small=True)
    assert found.schema.types == moments.types


def test_rows_get_ids_of_their_own(compute: Compute) -> None:
    compute.show_rows("given", rows((1, "a"), (1, "a"), (2, None)))
    made = compute.lazily(Query("SELECT k, v FROM given"), "looking").as_stored(KEPT, IDS)
    made.show("made")
    found = compute.collect(Query("SELECT * FROM made"), "looking", small=True).to_pylist()
    assert Counter((row["k"], row["v"], row["__trickle_sequence"]) for row in found) == Counter(
        {(1, "a", 7): 2, (2, None, 7): 1}
    )
    assert len({row["__trickle_position"] for row in found}) == 3


def test_new_rows_of_a_change_set_get_ids_and_old_ones_keep_theirs(compute: Compute) -> None:
    typed = pa.schema(
        [(OPERATION, pa.string()), *SCHEMA, ("__trickle_sequence", pa.int64()), ("__trickle_position", pa.int64())]
    )
    compute.show_rows("given", rows(("I", 1, "a", None, None), ("D", 2, None, 3, 44), schema=typed))
    with compute.computed(Query("SELECT * FROM given"), "looking", IDS) as result:
        assert dict(result.counted_by(OPERATION)) == {"I": 1, "D": 1}
        assert result.example(OPERATION, "D") == "k=2, v=None"
        result.show("made")
        found = {
            row[OPERATION]: row for row in compute.collect(Query("SELECT * FROM made"), "x", small=True).to_pylist()
        }
    assert found["I"]["__trickle_sequence"] == 7
    assert found["I"]["__trickle_position"] is not None
    assert (found["D"]["__trickle_sequence"], found["D"]["__trickle_position"]) == (3, 44)


def test_more_rows_than_asked_for_are_not_handed_out(compute: Compute) -> None:
    compute.show_rows("given", rows((1, "a"), (2, "b")))
    query = Query("SELECT * FROM given")
    assert compute.collect_at_most(query, 1, "looking", small=True) is None
    found = compute.collect_at_most(query, 2, "looking", small=True)
    assert found is not None
    assert found.num_rows == 2


# ---------------------------------------------------------------- what is committed


def computed(compute: Compute, table: pa.Table) -> Any:
    compute.show_rows("computed", table)
    return compute.lazily(Query("SELECT * FROM computed"), "looking")


def test_a_merge_does_what_its_operations_say(compute: Compute, st: str) -> None:
    merged = change_set(("U", 1, "A"), ("D", None, "c"), ("I", 4, "d"))
    commit = computed(compute, merged).merge(st, 1, ["k"], said(st, 1), Counts(1, 1, 1))
    assert (commit.version, commit.inserted, commit.updated, commit.deleted) == (2, 1, 1, 1)
    assert stored(st) == Counter([(1, "A"), (2, None), (4, "d")])
    found = stamp.last_stamp(st, 2)
    assert found is not None
    assert found.stamp.refresh_id == "r1"


def test_an_append_and_an_overwrite(compute: Compute, st: str) -> None:
    commit = computed(compute, rows((2, None))).append(st, 1, said(st, 1))
    assert (commit.version, commit.inserted) == (2, 1)
    assert stored(st)[2, None] == 2
    commit = computed(compute, rows((9, "z"))).overwrite(st, 2, said(st, 2), new_schema=False)
    assert (commit.version, commit.inserted) == (3, 1)
    assert stored(st) == Counter([(9, "z")])


WAYS: dict[str, Callable[[Any, str, int, Stamp], Any]] = {
    "append": lambda result, path, pinned, with_: result.append(path, pinned, with_),
    "overwrite": lambda result, path, pinned, with_: result.overwrite(path, pinned, with_, new_schema=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_comes_second_commits_nothing(compute: Compute, st: str, way: str) -> None:
    """Neither on top of a version that was not looked at, nor with a sequence that the log has."""
    computed(compute, rows((5, "e"))).append(st, 1, said(st, 1))
    for pinned in (1, 2):
        with pytest.raises(CommitConflict):
            WAYS[way](computed(compute, rows((6, "f"))), st, pinned, said(st, 1, "other"))
    assert log.newest_version(st) == 2


def test_a_merge_that_comes_second_commits_nothing(compute: Compute, st: str) -> None:
    computed(compute, rows((5, "e"))).append(st, 1, said(st, 1))
    for pinned in (1, 2):
        with pytest.raises(CommitConflict):
            computed(compute, change_set(("I", 6, "f"))).merge(st, pinned, ["k"], said(st, 1, "other"), Counts(1))
    assert log.newest_version(st) == 2


@pytest.mark.parametrize("wrong", [("U", 8, "x"), ("D", 8, "x"), ("I", 1, "x")])
def test_what_does_not_fit_commits_nothing(compute: Compute, st: str, wrong: tuple[object, ...]) -> None:
    counts = {"I": Counts(1), "U": Counts(0, 1), "D": Counts(0, 0, 1)}[str(wrong[0])]
    with pytest.raises(NegativeMultiplicity) as caught:
        computed(compute, change_set(wrong)).merge(st, 1, ["k"], said(st, 1), counts)
    assert f"For example k={wrong[1]}" in (caught.value.detail or "")
    assert log.newest_version(st) == 1


def test_rows_that_slip_in_before_a_merge_are_told(compute: Compute, st: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both commit on top of them, and both say so."""
    from engine.lake import apply

    monkeypatch.setattr(apply, "_refuse_newer", lambda path, version: None)
    with_ = said(st, 1)
    write_deltalake(st, rows((5, "e")), mode="append")
    with pytest.raises(Tampered):
        computed(compute, change_set(("I", 6, "f"))).merge(st, 1, ["k"], with_, Counts(1))
    assert log.newest_version(st) == 3


# ---------------------------------------------------------------- all rows anew

ANYTHING = (Column("k", "bigint"), Column("d", "double"), Column("l", "array<string>"), Column("n", "bigint", False))
OF_ANYTHING = pa.schema([("k", pa.int64()), ("d", pa.float64()), ("l", pa.list_(pa.string())), ("n", pa.int64())])
NAN = float("nan")
ODD = ((1, NAN, ["a", None], 1), (2, -0.0, [], 2), (3, 0.0, None, 3), (None, 1e308, ["\n"], 4), (5, None, ["x"], 5))


@pytest.fixture(params=["plain", "partitioned"])
def anything(request: pytest.FixtureRequest, tmp_path: Path, spark_host: SparkHost) -> str:
    """Of doubles and arrays, and with a column that is never NULL: partitioned ones are Spark's own to overwrite."""
    path = tmp_path / "it's anything"
    if request.param == "plain":
        storage = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
        SparkCompute(spark_host).create_table(str(path), ANYTHING, storage, "")
        write_deltalake(path, rows(*ODD, schema=OF_ANYTHING), mode="append")
    else:
        fields = [pa.field(field.name, field.type, nullable=field.name != "n") for field in OF_ANYTHING]
        empty = pa.schema(fields).empty_table()
        write_deltalake(path, empty, partition_by=["n"], configuration={"delta.enableChangeDataFeed": "true"})
        write_deltalake(path, rows(*ODD, schema=OF_ANYTHING).cast(pa.schema(fields)), mode="append")
    return str(path)


def exactly(path: str) -> Counter[str]:
    """As text, which tells −0.0 from 0.0 and NaN from NULL, read by neither of the two."""
    opened = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    found = pa.table(opened.read_all()).to_pylist()
    return Counter(repr([row[name] for name in OF_ANYTHING.names]) for row in found)


def exact(*values: tuple[object, ...]) -> Counter[str]:
    return Counter(repr(list(value)) for value in values)


def never_null(compute: Compute, table: pa.Table) -> Any:
    """As a query gives it that counts: `n` is known not to be NULL."""
    compute.show_rows("computed", table)
    query = Query("SELECT k, d, l, coalesce(n, 0) AS n FROM computed")
    return compute.lazily(query, "looking").as_stored(ANYTHING, None)


def test_all_rows_anew_are_the_same_to_the_last_bit(compute: Compute, anything: str) -> None:
    before = log.newest_version(anything)
    table = rows(*ODD, (6, -NAN, ["y"], 6), schema=OF_ANYTHING)
    commit = never_null(compute, table).overwrite(anything, before, said(anything, 1), new_schema=False)
    assert (commit.version, commit.inserted, commit.deleted) == (before + 1, 6, 5)
    assert exactly(anything) == exact(*ODD, (6, NAN, ["y"], 6))
    found = stamp.last_stamp(anything, commit.version)
    assert found is not None
    assert found.stamp.sequence == 1
    # what was written is found again by its keys: the bounds of the files hide no row
    compute.show_version("again", anything, commit.version, ANYTHING)
    query = Query("SELECT k FROM again WHERE d > 1e300 OR k = 2", reads=frozenset(("again",)))
    got = compute.collect(query, "looking", small=True).to_pylist()
    assert Counter(row["k"] for row in got) == Counter([1, 2, None, 6])


def test_the_driver_commits_what_was_written_into_a_folder(compute: Compute, anything: str) -> None:
    """But where a table is partitioned: that one Spark overwrites itself."""
    partitioned = bool(DeltaTable(anything).metadata().partition_columns)
    result = never_null(compute, rows(*ODD, schema=OF_ANYTHING))
    commit = result.overwrite(anything, log.newest_version(anything), said(anything, 1), new_schema=False)
    added = [each["add"]["path"] for each in log.actions(anything, commit.version) or [] if "add" in each]
    assert added
    assert {path.startswith("full-1-r1/") for path in added} == {not partitioned}
    assert not list(Path(anything).glob("full-*/_uncommitted"))


@pytest.mark.parametrize("action", ["crash", "ambiguous", "raise"])
def test_files_without_a_commit_are_removed_by_the_next(compute: Compute, st: str, action: str) -> None:
    table = rows((9, "z"))
    with (
        FAILPOINTS.armed(Arming(Failpoint.COMMIT, Action(action))),
        pytest.raises((CommitConflict, SimulatedCrash)),
    ):
        computed(compute, table).overwrite(st, 1, said(st, 1), new_schema=False)
    happened = action == "ambiguous"
    assert log.newest_version(st) == 1 + happened
    assert bool(left_by_full_refreshes(Path(st))) == (action == "crash")
    sequence = 1 + happened
    computed(compute, table).overwrite(st, 1 + happened, said(st, sequence, "next"), new_schema=False)
    assert left_by_full_refreshes(Path(st)) == []
    assert stored(st) == Counter([(9, "z")])


def test_versions_of_a_partitioned_source_are_the_same_rows(compute: Compute, tmp_path: Path) -> None:
    path = tmp_path / "by v"
    write_deltalake(path, rows((1, "a"), (2, "b c"), (None, None)), partition_by=["v"])
    compute.show_version("parts", str(path), 0, COLUMNS)
    assert shown(compute, "parts") == Counter([(1, "a"), (2, "b c"), (None, None)])


def test_an_overwrite_by_a_handle_of_yesterday_commits_nothing(compute: Compute, st: str) -> None:
    """Somebody commits while the files are written: the handle knows."""

    def meanwhile(point: Failpoint) -> None:
        write_deltalake(st, rows((5, "e")), mode="append")

    with FAILPOINTS.armed() as points:
        points.on_pass = meanwhile
        with pytest.raises(CommitConflict):
            computed(compute, rows((9, "z"))).overwrite(st, 1, said(st, 1), new_schema=False)
    assert log.newest_version(st) == 2
    assert left_by_full_refreshes(Path(st)) == []
