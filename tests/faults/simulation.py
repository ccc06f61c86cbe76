"""A workspace whose processes fail, die, race and are meddled with, over real Delta logs and without Spark.

Everything that decides and commits is the engine's own; DuckDB computes in Spark's place, sources are written by
hand, and the folder is in memory. What must hold is looked at from outside, by other code than keeps it.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import sqlglot
from deltalake import DeltaTable, write_deltalake

from engine import config
from engine.algebra.dialect import Spark4
from engine.asked import Alteration
from engine.catalog.store import Catalog
from engine.clock import SystemClock
from engine.compile.bind import Change
from engine.compile.parse import Limits
from engine.errors import TrickleError
from engine.events import EventBus
from engine.lake import log, stamp, tables
from engine.lake.turns import Turns
from engine.observe.history import History
from engine.records import Column, Frontier, Initiator, Outcome, RefreshRecord, StreamTable
from engine.refresh.alter import Alterations
from engine.refresh.define import Definitions
from engine.refresh.full import STRATEGY
from engine.refresh.ledger import Ledger
from engine.refresh.maintain import Maintainer
from engine.refresh.plans import Plans
from engine.refresh.rename import Renames, finish
from engine.refresh.repair import Repairs
from engine.refresh.run import Refresher
from engine.refresh.sources import Sources
from engine.refresh.writes import Writes
from engine.results import AlterResult
from tests.faults.witness import Broken, left_by_full_refreshes, strangers
from tests.support.delta_files import PolledFile, SourceTable
from tests.support.duck_analyzer import for_duckdb
from tests.support.duck_compute import DuckCompute
from tests.support.fake_lake import FakeLake, duck_type, quoted
from tests.support.multisets import same_rows, written
from tests.support.view_test import Row

#: the stream table under test, and one that reads it
FIRST, SECOND = "result", "second"
#: what the first is called for a while
RENAMED = "another"


@dataclass(frozen=True)
class Setup:
    """What a workspace is made of."""

    about: str
    relations: Mapping[str, tuple[Column, ...]]
    rows: Mapping[str, tuple[Row, ...]]
    query: str
    #: DML, a step each
    steps: tuple[str, ...]
    #: by the writers that Spark has for large changes
    by_spark: bool = False
    #: each refresh of the first recomputes it
    recomputed: bool = False
    #: with a second stream table that reads the first
    chained: bool = False
    #: takes no more data than the steps have
    at_the_edge: bool = False
    #: changes of the sources are told by their files
    by_files: bool = False
    #: how often a refresh begins anew by itself
    retries: int = 0
    #: the sources are files, which are looked at
    polled: bool = False


class MovedClock(SystemClock):
    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


class Process:
    """What one engine process has in its memory; all else is in the folder."""

    def __init__(self, folder: Path, compute: DuckCompute, settings: config.Settings, clock: MovedClock) -> None:
        self.compute = compute
        self.catalog = Catalog.open(folder / "catalog.db")
        history = History(folder / "history")
        finish(self.catalog, history)
        events = EventBus(self.catalog.append_event, clock)
        ledger = Ledger(self.catalog, history, events, clock, settings.refresh.max_consecutive_errors)
        self.plans = plans = Plans(self.catalog, compute, Limits())
        self.refresher = Refresher(self.catalog, compute, plans, ledger, events, settings, clock, lambda: 1)
        turns = Turns(folder / "turns", wait_s=60)
        self.sources = Sources(self.catalog, compute, events, settings, clock, turns)
        warehouse = folder / "warehouse"
        self.definitions = Definitions(
            self.catalog, compute, plans, self.sources, self.refresher, history, events, settings, clock, warehouse
        )
        self.alterations = Alterations(self.catalog, plans, self.definitions, self.refresher, events)
        self.writes = Writes(self.catalog, plans, self.refresher, ledger, events, settings, turns)
        self.history = history
        self.renames = Renames(self.catalog, self.definitions, self.refresher, history, events, settings)
        self.maintainer = Maintainer(self.catalog, compute, self.refresher, events, settings, clock)
        self.repairs = Repairs(self.catalog, self.definitions, self.refresher, history, events, warehouse)

    def maintain(self, name: str) -> None:
        """Also where no other process would wait, and none is asked."""
        self.maintainer.now(self.catalog.get_stream_table(name))

    def refresh(self, name: str, *, full: bool = False) -> RefreshRecord:
        table = self.catalog.get_stream_table(name)
        done = self.refresher.refresh(table, asked_full=full, initiated_by=Initiator.MANUAL)
        if done.strategy == STRATEGY and (left := left_by_full_refreshes(Path(table.path))):
            raise Broken(f"a full refresh of {name} left files that no version names: {left}")
        return done


class World:
    def __init__(self, folder: Path, setup: Setup) -> None:
        self.folder = folder
        self.setup = setup
        self.lake = FakeLake(setup.relations)
        settings = config.load(folder, env={})
        rows = 0 if setup.by_spark else settings.refresh.max_driver_delta_rows
        changed = replace(settings.refresh, max_driver_delta_rows=rows, conflict_retries=setup.retries)
        # another table in a source's place stops every second kind of world, and is read anew in the others
        blocking = replace(settings.sources, block_source_ddl=setup.by_spark and not setup.polled)
        self.settings = replace(settings, refresh=changed, sources=blocking)
        self.clock = MovedClock()
        self._computes = [DuckCompute(setup.relations), DuckCompute(setup.relations)]
        (folder / "warehouse").mkdir()
        self.sources = {
            name: PolledFile(folder / "sources" / name, columns, folder / "polled" / name)
            if setup.polled
            else SourceTable(folder / "sources" / name, columns)
            for name, columns in setup.relations.items()
        }
        for name, rows_there in setup.rows.items():
            self.lake.insert(name, rows_there)
            if rows_there:
                self.sources[name].append(self._arrow(name))
        self.lake.settle()
        self.process = self._process(self._computes[0])
        self._rival: Process | None = None
        for name in setup.relations:
            self.process.sources.add(
                name,
                str(self.sources[name].place),
                format="parquet" if setup.polled else "delta",
                cdc_mode="diff" if setup.by_files and not setup.polled else "auto",
                key=(),
                enable_cdf=None,
            )
        #: the rows that nudges took out, and of which source
        self._taken: list[tuple[str, Row]] = []
        self._looked = {FIRST: _Looked(), SECOND: _Looked()}

    def _process(self, compute: DuckCompute, like: Process | None = None) -> Process:
        """Another one. What a query compiles to does not depend on who asks: it is handed on, because it takes time."""
        process = Process(self.folder, compute, self.settings, self.clock)
        if like is not None:
            process.plans._known.update(like.plans._known)
        return process

    # ---------------------------------------------------------------- what processes do

    @property
    def names(self) -> tuple[str, ...]:
        return (FIRST, SECOND) if self.setup.chained else (FIRST,)

    def create(self) -> None:
        """All that is not there, or not filled."""
        for name, query in ((FIRST, self.setup.query), (SECOND, f"SELECT * FROM {FIRST}")):
            if name not in self.names:
                continue
            if name in {table.name for table in self.process.catalog.stream_tables()}:
                self.process.refresh(name)
            else:
                self._looked[name] = _Looked()
                self.process.definitions.create(
                    name,
                    query,
                    schedule="10s",
                    refresh_mode="FULL" if self.setup.recomputed and name == FIRST else "DIFFERENTIAL",
                    initialize=True,
                    append_only=False,
                    comment="",
                    enable_cdf=None,
                )
            for compute in self._computes:
                compute.know(name, self.table(name).columns)

    def alter(self, query: str) -> AlterResult:
        return self.process.alterations.alter(FIRST, Alteration(query=query))

    def drop(self) -> None:
        self.process.definitions.drop(FIRST, if_exists=True, cascade=True)

    def refresh(self) -> tuple[RefreshRecord, ...]:
        """All of them, upstream first."""
        return tuple(self.process.refresh(name) for name in self.names)

    def ordinary(self, name: str) -> Outcome:
        """What a refresh is when something changed and nothing is wrong."""
        return Outcome.FULL if self.setup.recomputed and name == FIRST else Outcome.DIFFERENTIAL

    @property
    def rival(self) -> Process:
        """Another process on the same folder, which lives on when the first one dies."""
        if self._rival is None:
            other = next(each for each in self._computes if each is not self.process.compute)
            self._rival = self._process(other, self.process)
        return self._rival

    def change_roles(self) -> None:
        """The one that looked on goes on from here."""
        self.process, self._rival = self.rival, self.process

    def restart(self) -> None:
        """Another process, which knows what is in the folder."""
        self.process.catalog.close()
        self.process = self._process(self.process.compute, self.process)

    def lose_catalog(self) -> None:
        self.close()
        for file in self.folder.glob("catalog.db*"):
            file.unlink()
        self.process = self._process(self.process.compute)

    def remembered(self) -> Remembered:
        """All that a refresh can change, to go back to it: the folder but for the sources, and what was looked at."""
        self.restart()
        folder = Path(tempfile.mkdtemp(prefix="before-", dir=self.folder))
        for path in self._changeable():
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, folder / path.name)
        return Remembered(folder, copy.deepcopy(self._looked))

    def go_back(self, to: Remembered) -> None:
        """A process that knows nothing of what came since."""
        self.close()
        for path in self._changeable():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in to.folder.iterdir():
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, self.folder / path.name)
        self._looked = copy.deepcopy(to.looked)
        self.process = self._process(self.process.compute, self.process)

    def _changeable(self) -> list[Path]:
        kept = {"sources"}
        return [path for path in self.folder.iterdir() if path.name not in kept and not path.name.startswith("before-")]

    def close(self) -> None:
        self.process.catalog.close()
        if self._rival is not None:
            self._rival.catalog.close()
            self._rival = None

    @contextmanager
    def later(self, days: int) -> Iterator[None]:
        self.clock.ahead = timedelta(days=days)
        try:
            yield
        finally:
            self.clock.ahead = timedelta()

    def table(self, name: str = FIRST) -> StreamTable:
        return self.process.catalog.get_stream_table(name)

    def path(self, name: str = FIRST) -> str:
        return str(self.folder / "warehouse" / name)

    # ---------------------------------------------------------------- what others do

    def change_sources(self, dml: str) -> None:
        """Each statement is one commit of a source."""
        for statement in sqlglot.parse(dml, dialect=Spark4):
            if statement is None:
                continue
            self.lake.run(statement.sql(dialect=Spark4))
            self._commit_changes()

    def nudge(self) -> None:
        """A small change that can be had any number of times: rows go, and later come back.

        Not at once: two changes that cancel each other are none.
        """
        came_out = None
        if len(self._taken) < 2:
            found = ((name, self.lake.take_out(name)) for name in self.table().sources)
            came_out = next(((name, row) for name, row in found if row is not None), None)
        if came_out is not None:
            self._taken.append(came_out)
        elif self._taken:
            self.lake.put_back(*self._taken.pop(0))
        self._commit_changes()

    def nudge_source(self, name: str) -> None:
        """A row of that source goes, if it has one."""
        self.lake.take_out(name)
        self._commit_changes()

    def _commit_changes(self) -> None:
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

    def compact_sources(self) -> None:
        """Commits that change no row."""
        for source in self.sources.values():
            source.optimize()

    def replace_source(self, name: str) -> None:
        self.sources[name].replace(self.setup.relations[name], self._arrow(name))

    def lie_about(self, name: str, row: str) -> None:
        """The source's change feed has a row deleted that never was."""
        lie = self.lake.db.execute(
            f"SELECT *, 'delete' AS _change_type FROM {quoted(name)} WHERE false"
        ).to_arrow_table()
        told = self.lake.db.execute(f"SELECT {row}, 'delete' AS _change_type").to_arrow_table()
        self.sources[name].lie(told.rename_columns(lie.column_names).cast(lie.schema))

    def touch_target(self) -> None:
        """Somebody maintains the stream table: a commit that changes no row."""
        tables.set_properties(self.path(), {"looked.after": "yes"})

    def meddle(self) -> bool:
        """Somebody writes into the stream table: a row of it once more. Where there is none there is nothing to do."""
        handle = DeltaTable(self.path())
        if not handle.file_uris():
            return False
        schema = pa.schema(handle.schema().to_arrow())
        row = self._computes[1].files(handle).limit(1).to_arrow_table()
        if not row.num_rows:
            return False
        write_deltalake(handle, row.select(schema.names).cast(schema), mode="append")
        return True

    # ---------------------------------------------------------------- what must hold

    def check(self, where: str) -> None:
        """At any moment: the rows are the query's at the frontier, which never goes back, under one stamp each."""
        for name in self.names:
            self._check(name, f"{where}, {name}")
        self._no_strangers(where)

    def _check(self, name: str, where: str) -> None:
        looked = self._looked[name]
        newest = log.newest_version(self.path(name))
        if newest == looked.version:
            return
        for version in range(looked.version + 1, newest + 1):
            info = log.commit_info(self.path(name), version)
            found = stamp.Stamp.from_json(info.user_metadata) if info is not None else None
            if found is not None:
                self._follows(name, looked, found, where)
        looked.version = newest
        if looked.stamps:
            frontier = looked.stamps[-1].frontier
            self._same(self.stored(name, newest), self.expected(name, frontier), where)

    def _follows(self, name: str, looked: _Looked, found: stamp.Stamp, where: str) -> None:
        if any(each.refresh_id == found.refresh_id for each in looked.stamps):
            raise Broken(f"{where}: refresh {found.refresh_id} has two stamps")
        if found.sequence != len(looked.stamps) + 1:
            raise Broken(f"{where}: sequence {found.sequence} follows {len(looked.stamps)}")
        before: Frontier = looked.stamps[-1].frontier if looked.stamps else {}
        began_anew, looked.began_anew = looked.began_anew, False
        for source, at in found.frontier.items():
            if not began_anew and source in before and at.version < before[source].version:
                raise Broken(f"{where}: the frontier of {source} went back to {at.version}")
        self._stands_on(name, found, where)
        looked.stamps.append(found)

    def _stands_on(self, name: str, found: stamp.Stamp, where: str) -> None:
        """What stands on a stream table stands on what that one stood on."""
        below = found.frontier
        if name == SECOND:
            first = stamp.last_stamp(self.path(), found.frontier[FIRST].version)
            below = first.stamp.base_frontier if first is not None else {}
        if found.base_frontier != below:
            raise Broken(f"{where}: at the bottom stands {found.base_frontier} instead of {below}")

    def forget_frontiers(self) -> None:
        """A source began anew: its versions mean something else."""
        for looked in self._looked.values():
            looked.began_anew = True

    def caught_up(self, where: str, *outcomes: Outcome) -> None:
        """What the next refreshes must make of it: everything caught up, and then nothing to do."""
        for done in self._recovered(where):
            if done.outcome not in (outcomes or (self.ordinary(done.st), Outcome.NO_DATA)):
                raise Broken(f"{where}: recovery of {done.st} was {done.outcome}, {done.reason.text}")
        self.check(f"{where}, recovered")
        table = self.table()
        present = self.lake.recompute(self.setup.query, table.columns)
        for name in self.names:
            self._same(self.stored(name, self._looked[name].version), present, f"{where}, {name} caught up")
        versions = [log.newest_version(self.path(name)) for name in self.names]
        for again in self._recovered(where):
            if again.outcome is not Outcome.NO_DATA:
                raise Broken(f"{where}: a second recovery was {again.outcome}, {again.reason.text}")
        if versions != [log.newest_version(self.path(name)) for name in self.names]:
            raise Broken(f"{where}: a second recovery committed something")

    def caught_up_already(self, where: str) -> None:
        """Nobody has to do anything."""
        self.check(where)
        present = self.lake.recompute(self.setup.query, self.table().columns)
        for name in self.names:
            self._same(self.stored(name, log.newest_version(self.path(name))), present, f"{where}, {name}")

    def _recovered(self, where: str) -> tuple[RefreshRecord, ...]:
        try:
            return self.refresh()
        except TrickleError as error:
            raise Broken(f"{where}: recovery failed with {error!r}") from error

    def stored(self, name: str, version: int) -> list[Row]:
        return self._looking.rows_of(self.path(name), version, self.table(name).columns)

    def expected(self, name: str, frontier: Frontier) -> list[Row]:
        """The query over the sources' own files at these versions."""
        looking = self._looking
        if name == SECOND:
            return looking.rows_of(self.path(), frontier[FIRST].version, self.table().columns)
        for source, at in frontier.items():
            looking.show_version(source, str(self.sources[source].path), at.version, self.setup.relations[source])
        columns = self.table(name).columns
        names = [f"c{n}" for n, _ in enumerate(columns)]
        cast = ", ".join(f"CAST({n} AS {duck_type(c.type)})" for n, c in zip(names, columns, strict=True))
        sql = f"SELECT {cast} FROM ({for_duckdb(self.setup.query)}) AS q({', '.join(names)})"
        return looking.db.execute(sql).fetchall()

    @property
    def _looking(self) -> DuckCompute:
        """The views of whoever looks from outside stand in nobody's way."""
        return self._computes[0]

    def same_as_now(self, query: str, where: str) -> None:
        """The first holds what this query gives now."""
        stored = self.stored(FIRST, log.newest_version(self.path()))
        self._same(stored, self.lake.recompute(query, self.table().columns), where)

    def _same(self, actual: Sequence[Row], expected: Sequence[Row], where: str) -> None:
        if not same_rows(list(actual), list(expected)):
            raise Broken(f"{where}: other rows\n  expected\n{written(expected)}\n  actual\n{written(actual)}")

    def _no_strangers(self, where: str) -> None:
        """Nothing but Delta's own files beside a table, and nothing but tables in the warehouse."""
        warehouse = self.folder / "warehouse"
        strange = strangers(warehouse, set(self.names))
        missing = [name for name in self.names if not (warehouse / name).is_dir()]
        if strange or missing:
            raise Broken(f"{where}: left over are {strange}, missing {missing}")

    def gone(self, where: str) -> None:
        """Nothing is left of a stream table that was dropped."""
        left = [path.name for path in (self.folder / "warehouse").iterdir()]
        if left or self.process.catalog.stream_tables():
            raise Broken(f"{where}: left over are {left}, {[t.name for t in self.process.catalog.stream_tables()]}")


@dataclass(frozen=True)
class Remembered:
    """A world as it was."""

    folder: Path
    looked: dict[str, _Looked]


class _Looked:
    """How far a stream table was looked at: what was right stays right, because commits never change."""

    def __init__(self) -> None:
        self.version = -1
        self.stamps: list[stamp.Stamp] = []
        self.began_anew = False
