"""A stream table's life with a process that fails, dies and comes back, over real Delta logs and without Spark.

Everything that decides and commits is the engine's own; DuckDB computes in Spark's place, sources are written by
hand, and the folder is in memory. After each step the promise is looked at from outside, by other code than keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import sqlglot

from engine import config
from engine.catalog.store import Catalog
from engine.clock import SystemClock
from engine.compile.bind import Change
from engine.compile.dialect import Spark4
from engine.compile.parse import Limits
from engine.errors import TrickleError
from engine.events import EventBus
from engine.failpoints import FAILPOINTS, Action, Arming, Failpoint, SimulatedCrash
from engine.lake import log, stamp, tables
from engine.observe.history import History
from engine.records import Frontier, Initiator, Outcome, RefreshRecord, StreamTable
from engine.refresh.define import Definitions
from engine.refresh.ledger import Ledger
from engine.refresh.plans import Plans
from engine.refresh.run import Refresher
from engine.refresh.sources import Sources
from tests.support.delta_files import SourceTable
from tests.support.duck_compute import DuckCompute
from tests.support.fake_lake import FakeLake, _translated, duck_type, quoted
from tests.support.multisets import same_rows, written
from tests.support.view_test import Row, ViewTest

NAME = "result"


class Broken(AssertionError):
    """The promise does not hold."""


class Process:
    """What one engine process has in its memory; all else is in the folder."""

    def __init__(self, folder: Path, compute: DuckCompute, settings: config.Settings) -> None:
        clock = SystemClock()
        self.catalog = Catalog.open(folder / "catalog.db")
        history = History(folder / "history")
        events = EventBus(self.catalog.append_event, clock)
        ledger = Ledger(self.catalog, history, events, clock)
        plans = Plans(self.catalog, compute, Limits())
        self.refresher = Refresher(self.catalog, compute, plans, ledger, events, settings, clock, lambda: 1)
        self.sources = Sources(self.catalog, compute, events, settings, clock)
        self.definitions = Definitions(
            self.catalog,
            compute,
            plans,
            self.sources,
            self.refresher,
            history,
            events,
            settings,
            clock,
            folder / "warehouse",
        )

    def refresh(self, *, asked_full: bool = False) -> RefreshRecord:
        table = self.catalog.get_stream_table(NAME)
        return self.refresher.refresh(table, asked_full=asked_full, initiated_by=Initiator.MANUAL)


class World:
    def __init__(self, folder: Path, test: ViewTest, *, by_spark: bool = False) -> None:
        self.folder = folder
        self.test = test
        self.lake = FakeLake(test.relations)
        settings = config.load(folder, env={})
        rows = 0 if by_spark else settings.refresh.max_driver_delta_rows
        self.settings = replace(settings, refresh=replace(settings.refresh, max_driver_delta_rows=rows))
        self.compute = DuckCompute(test.relations)
        (folder / "warehouse").mkdir()
        self.sources = {
            name: SourceTable(folder / "sources" / name, columns) for name, columns in test.relations.items()
        }
        for table in test.tables:
            self.lake.insert(table.name, table.rows)
            if table.rows:
                self.sources[table.name].append(self._arrow(table.name))
        self.lake.settle()
        self.process = Process(folder, self.compute, self.settings)
        for name in test.relations:
            self.process.sources.add(
                name, str(self.sources[name].path), format="delta", cdc_mode="auto", key=(), enable_cdf=None
            )
        #: the newest frontier that anybody has seen committed
        self._seen: Frontier = {}

    def create(self) -> None:
        self.process.definitions.create(
            NAME,
            self.test.query,
            schedule="10s",
            refresh_mode="DIFFERENTIAL",
            initialize=True,
            append_only=False,
            comment="",
            enable_cdf=None,
        )

    @property
    def table(self) -> StreamTable:
        return self.process.catalog.get_stream_table(NAME)

    @property
    def path(self) -> str:
        return self.table.path

    def restart(self) -> None:
        """Another process, which knows what is in the folder."""
        self.process.catalog.close()
        self.process = Process(self.folder, self.compute, self.settings)

    # ---------------------------------------------------------------- what happens

    def change_sources(self, dml: str) -> None:
        """Each statement is one commit of a source."""
        for statement in sqlglot.parse(dml, dialect=Spark4):
            if statement is None:
                continue
            self.lake.run(statement.sql(dialect=Spark4))
            for name, kind in self.lake.kinds.items():
                self._commit(name, kind)
            self.lake.advance()

    def _commit(self, name: str, kind: Change) -> None:
        delta = quoted(f"{name}@delta")
        if kind is Change.APPEND:
            came = self.lake.db.execute(f"SELECT * EXCLUDE (__w) FROM {delta}").to_arrow_table()
            self.sources[name].append(came)
            return
        changed = self.lake.db.execute(
            f"SELECT * EXCLUDE (__w), CASE WHEN __w > 0 THEN 'insert' ELSE 'delete' END AS _change_type FROM {delta}"
        )
        self.sources[name].change(changes=changed.to_arrow_table(), all_rows=self._arrow(name))

    def _arrow(self, name: str):
        return self.lake.db.execute(f"SELECT * FROM {quoted(name)}").to_arrow_table()

    def attempt(self, *armings: Arming) -> RefreshRecord | TrickleError | SimulatedCrash:
        """One refresh with faults in its way; who died is started again."""
        with FAILPOINTS.armed(*armings):
            try:
                return self.process.refresh()
            except SimulatedCrash as crash:
                self.restart()
                return crash
            except TrickleError as error:
                return error

    # ---------------------------------------------------------------- what must hold

    def check(self, where: str) -> None:
        """At any moment: the rows are the query's at the frontier, which never goes back, under one stamp each."""
        pinned = tables.pin(self.path)
        last = stamp.last_stamp(pinned)
        stamps = self._stamps(pinned.version)
        ids = Counter(each.refresh_id for each in stamps)
        twice = [key for key, count in ids.items() if count > 1]
        if twice:
            raise Broken(f"{where}: refresh {twice[0]} has {ids[twice[0]]} stamps")
        sequences = [each.sequence for each in stamps]
        if sequences != list(range(1, len(sequences) + 1)):
            raise Broken(f"{where}: the sequences are {sequences}")
        if last is None:
            if self._seen:
                raise Broken(f"{where}: the stamp is gone")
            return
        for name, version in last.stamp.frontier.items():
            before = self._seen.get(name)
            if before is not None and version.version < before.version:
                raise Broken(f"{where}: the frontier of {name} went back from {before.version} to {version.version}")
        self._seen = dict(last.stamp.frontier)
        self._same(self.stored(pinned.version), self.expected(last.stamp.frontier), where)
        self._no_strangers(where)

    def recover(self, where: str) -> None:
        """What the next refreshes must make of it: everything caught up, and then nothing to do."""
        first = self.process.refresh()
        if first.outcome not in (Outcome.DIFFERENTIAL, Outcome.NO_DATA):
            raise Broken(f"{where}: recovery was {first.outcome}, {first.reason.text}")
        self.check(f"{where}, recovered")
        present = self.lake.recompute(self.test.query, self.table.columns)
        self._same(self.stored(tables.pin(self.path).version), present, f"{where}, caught up")
        version = tables.pin(self.path).version
        again = self.process.refresh()
        if again.outcome is not Outcome.NO_DATA or tables.pin(self.path).version != version:
            raise Broken(f"{where}: a second recovery was {again.outcome}, {again.reason.text}")

    def stored(self, version: int) -> list[Row]:
        self.compute.show_version("looked at", self.path, version, self.table.columns)
        return self.compute.db.execute('SELECT * FROM "looked at"').fetchall()

    def expected(self, frontier: Frontier) -> list[Row]:
        """The query over the sources' own files at these versions."""
        for name, at in frontier.items():
            self.compute.show_version(name, str(self.sources[name].path), at.version, self.test.relations[name])
        columns = self.table.columns
        names = [f"c{n}" for n, _ in enumerate(columns)]
        cast = ", ".join(f"CAST({n} AS {duck_type(c.type)})" for n, c in zip(names, columns, strict=True))
        sql = f"SELECT {cast} FROM ({_translated(self.test.query)}) AS q({', '.join(names)})"
        return self.compute.db.execute(sql).fetchall()

    def _same(self, actual: Sequence[Row], expected: Sequence[Row], where: str) -> None:
        if not same_rows(list(actual), list(expected)):
            raise Broken(f"{where}: other rows\n  expected\n{written(expected)}\n  actual\n{written(actual)}")

    def _stamps(self, upto: int) -> list[stamp.Stamp]:
        infos = (log.commit_info(self.path, version) for version in range(upto + 1))
        found = (stamp.Stamp.from_json(info.user_metadata) for info in infos if info is not None)
        return [each for each in found if each is not None]

    def _no_strangers(self, where: str) -> None:
        """Nothing but Delta's own files beside a table, and nothing but tables in the warehouse."""
        strangers = [
            path
            for path in self.folder.joinpath("warehouse").rglob("*")
            if path.is_file() and path.suffix not in (".parquet", ".json") and path.parent.name != "_delta_log"
        ]
        tables_there = [path.name for path in self.folder.joinpath("warehouse").iterdir()]
        if strangers or tables_there != [NAME]:
            raise Broken(f"{where}: left over are {strangers or tables_there}")


REFRESH_POINTS = tuple(
    point
    for point in Failpoint
    if point not in (Failpoint.FOLDER_MADE, Failpoint.CATALOGUED, Failpoint.FORGOTTEN, Failpoint.REMOVED)
)


@dataclass
class Tally:
    steps: int = 0
    fired: Counter[tuple[Failpoint, Action]] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.fired = Counter()


def faults() -> list[Arming]:
    """Each way to fail at each point of a refresh."""
    actions = (Action.RAISE, Action.CRASH)
    found = [Arming(point, action) for point in REFRESH_POINTS for action in actions]
    return [*found, Arming(Failpoint.COMMIT, Action.AMBIGUOUS)]


def live(world: World, faults_in_turn: Callable[[], Arming], tally: Tally) -> None:
    """All steps of a test, each with one fault in the way of its refresh."""
    world.create()
    world.check("created")
    for number, step in enumerate(world.test.steps, start=1):
        world.change_sources(step.dml)
        arming = faults_in_turn()
        where = f"{world.test.path.name}, step {number}, {arming.point.value} = {arming.action.value}"
        world.attempt(arming)
        for fired in FAILPOINTS.fired:
            tally.fired[fired.point, fired.action] += 1
        world.check(where)
        world.recover(where)
        tally.steps += 1
