"""Spark as a service of this process: started in the background, one session per thread, ended at once."""

from __future__ import annotations

import atexit
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import RefreshFailed, SparkUnavailable, TrickleError
from engine.lake import failures, query_failures, sameness, tables
from engine.lake.jars import default_cache, ensure_jars
from engine.lake.java import find_java, launcher_home
from engine.lake.launch import FIXED, Jvm, configuration, launch, make_scratch, write_log_configuration
from engine.lake.shared import SharedJvm, acquire, release
from engine.records import Column, SparkPhase, SparkStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.config import Settings

log = logging.getLogger(__name__)

CANCEL_AGAIN_S = 0.2

ON_ITS_WAY = (SparkPhase.JAVA, SparkPhase.JARS, SparkPhase.STARTING, SparkPhase.WARMING)


@dataclass(frozen=True)
class Analysis:
    """What Spark knows about a query without running it."""

    columns: tuple[Column, ...]
    duration_ms: float


class SparkHost:
    """The engine's Spark. Every method may be called from any thread."""

    def __init__(
        self,
        settings: Settings,
        logs: Path,
        on_status: Callable[[SparkStatus], None] = lambda status: None,
        cache: Path | None = None,
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._on_status = on_status
        self._cache = cache or default_cache()
        self._changed = threading.Condition()
        self._status = SparkStatus(SparkPhase.NOT_STARTED)
        self._failure: TrickleError | None = None
        self._shared: SharedJvm | None = None
        self._lost_jvm: Jvm | None = None
        #: of one start: a host that is stopped and started again must not wake what was stopped
        self._stopping = threading.Event()
        self._java = ""
        self._closed = False
        #: what is being worked under now
        self._tags: set[str] = set()

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin starting, in the background; nothing happens when it runs or is on its way."""
        self._look()
        with self._changed:
            if self._closed or self._status.phase is SparkPhase.READY or self._status.phase in ON_ITS_WAY:
                return
            self._stopping = threading.Event()
            self._failure = None
            self._status = SparkStatus(SparkPhase.JAVA, started_at=datetime.now(UTC))
            threading.Thread(target=self._start, args=(self._stopping,), name="spark-start", daemon=True).start()
        # once, however often it is started
        atexit.unregister(self.stop)
        atexit.register(self.stop)

    def close(self) -> None:
        """For good: a refresh that is cut off by it must not start Spark again."""
        with self._changed:
            self._closed = True
        self.stop()

    def stop(self) -> None:
        """End Spark at once, with whatever runs in it: what was committed stays, the rest never was."""
        with self._changed:
            self._stopping.set()
            shared, self._shared = self._shared, None
            started = self._status.phase is not SparkPhase.NOT_STARTED
        if shared is not None:
            release(shared, self._lost)
        if started:
            self._tell(SparkPhase.STOPPED)
        atexit.unregister(self.stop)

    def status(self) -> SparkStatus:
        running_jobs = self.running_jobs() if self.is_ready else 0
        self._look()  # after the question, which may be what met a dead JVM
        status = self._status
        return replace(status, running_jobs=running_jobs) if status.phase is SparkPhase.READY else status

    def died_of_memory(self) -> bool:
        """Of the last JVM that ended by itself, for who lost the connection to one: had it no memory left?"""
        if (shared := self._shared) is not None:
            shared.jvm.lost_connection()
        self._look()
        lost = self._lost_jvm
        return lost is not None and lost.died_of_memory()

    @property
    def is_ready(self) -> bool:
        """Can queries run now? Costs nothing to ask."""
        self._look()
        return self._status.phase is SparkPhase.READY

    def wait_ready(self, timeout_s: float | None = None) -> None:
        """Wait until queries can run; SparkUnavailable says why they never will."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._look()
        if self._status.phase is SparkPhase.LOST:
            self.start()
        with self._changed:
            while True:
                phase = self._status.phase
                if phase is SparkPhase.READY:
                    return
                if phase not in ON_ITS_WAY:
                    raise self._missing()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise SparkUnavailable(
                        f"Spark is not ready after {timeout_s:g} s.",
                        detail=f"It is {phase.value}. {self._status.detail}".strip(),
                        hint="The first start fetches jars and may take a while; try again.",
                    )
                self._changed.wait(left)

    @property
    def java(self) -> str:
        """Which Java runs it, once that is known."""
        return self._java

    @property
    def jvm_pid(self) -> int | None:
        shared = self._shared
        return shared.jvm.pid if shared else None

    # -- work ---------------------------------------------------------------------------------------------

    def session(self) -> SparkSession:
        """The calling thread's own session: its settings and temporary views are nobody else's."""
        shared = self._require()
        session: SparkSession | None = getattr(shared.sessions, "session", None)
        if session is None:
            session = self._new_session(shared)
            shared.sessions.session = session
        return session

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """Everything that this thread runs inside can be cancelled by its tag."""
        from py4j.protocol import Py4JError

        jvm = self._require().jvm
        jvm.context.setJobGroup(tag, tag, interruptOnCancel=False)
        self._tags.add(tag)
        try:
            yield
        except Exception as error:
            self._met(error, jvm)
            if jvm.alive() or (isinstance(error, TrickleError) and type(error) is not RefreshFailed):
                raise
            # a result that ends too early or PySpark without its context: not every step meets the lost connection
            raise failures.cut_off(error, "The work") from error
        finally:
            self._tags.discard(tag)
            with suppress(Py4JError, OSError):  # the JVM is gone
                jvm.context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
                jvm.context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]

    def cancel(self, tag: str) -> None:
        """Stop what runs under the tag and what would be started under it later. Tags are used once.

        Its jobs end at once. Their tasks look for that with each batch of rows they read: one that makes very much of
        few rows (a cross join) keeps its core until its batch is done. What it writes is nobody's.
        """
        self._cancel(tag)
        if tag in self._tags:
            threading.Thread(target=self._cancel_until_left, args=(tag,), name="spark-cancel", daemon=True).start()

    def _cancel(self, tag: str) -> None:
        from py4j.protocol import Py4JError

        shared = self._shared
        if shared is not None and shared.jvm.alive():
            with suppress(Py4JError, OSError):  # the JVM is gone, and what ran with it
                self._scala_context(shared).cancelJobGroupAndFutureJobs(tag)

    def _cancel_until_left(self, tag: str) -> None:
        """Seen with Spark 4.2: it refuses the jobs of a cancelled group, but not the shuffle stages that adaptive
        execution starts by themselves. So it is told again for as long as somebody works under the tag."""
        while tag in self._tags and not self._stopping.wait(CANCEL_AGAIN_S):
            self._cancel(tag)

    def running_jobs(self) -> int:
        from py4j.protocol import Py4JError

        shared = self._shared
        if shared is None or not shared.jvm.alive():
            return 0
        try:
            return len(shared.jvm.context.statusTracker().getActiveJobsIds())
        except (Py4JError, OSError) as error:
            self._met(error, shared.jvm)
            return 0

    def analyze(self, sql: str) -> Analysis:
        """Names and types of a query's columns; a typed error with its place if Spark does not accept it."""
        started = time.perf_counter()
        frame = self._frame(sql)
        fields = frame.schema.fields
        columns = tuple(Column(item.name, tables.spelled_by_spark(item.dataType), item.nullable) for item in fields)
        return Analysis(columns, (time.perf_counter() - started) * 1000)

    def same_semantics(self, sql_a: str, sql_b: str) -> bool:
        """Does Spark see the same query in both?"""
        jvm = self._require().jvm.context._jvm
        return sameness.same(jvm, self._frame(sql_a), self._frame(sql_b))

    # -- inside -------------------------------------------------------------------------------------------

    @staticmethod
    def _met(error: Exception, jvm: Jvm) -> None:
        """After a failure: from here on, whoever asks for Spark is told what is true of it."""
        if failures.is_lost_connection(error):
            jvm.lost_connection()

    def _frame(self, sql: str) -> Any:
        jvm, session = self._require().jvm, self.session()
        try:
            frame = session.sql(sql)
            frame.schema  # noqa: B018  analysis of types happens here at the latest
        except Exception as error:
            self._met(error, jvm)
            raise query_failures.of_query(error, sql) from error
        return frame

    def _require(self) -> SharedJvm:
        self._look()
        with self._changed:
            shared = self._shared
            if shared is None:
                raise self._missing()
            return shared

    def _missing(self) -> TrickleError:
        """Why there is no Spark to work with."""
        match self._status.phase:
            case SparkPhase.NOT_STARTED:
                return SparkUnavailable("Spark was not started.")
            case SparkPhase.STOPPED:
                return SparkUnavailable("Spark was stopped.")
            case phase:
                return self._failure or SparkUnavailable(
                    "Spark is not ready yet.", detail=f"It is {phase.value}.", hint="Wait until it is ready."
                )

    def _look(self) -> None:
        """Nobody is told that a JVM is ready which is dead, however soon they ask."""
        shared = self._shared
        if shared is not None and not shared.jvm.alive():
            self._lost(shared)

    def _lost(self, shared: SharedJvm) -> None:
        with self._changed:
            if self._shared is not shared or self._status.phase is not SparkPhase.READY:
                return  # it is known, or a start fails of it
            self._shared = None
            self._lost_jvm = shared.jvm
            status = self._become(
                SparkPhase.LOST,
                "Spark ended by itself",
                SparkUnavailable(
                    "Spark ended by itself.",
                    detail=f"Its JVM's last words are in {shared.output}.",
                    hint=f"{failures.STARTS_AGAIN}; if it was killed for memory, lower spark.driver_memory.",
                ),
            )
        self._report(status)

    def _new_session(self, shared: SharedJvm) -> SparkSession:
        from pyspark.sql import SparkSession

        try:
            session = SparkSession(shared.jvm.context).newSession()
            for key, value in FIXED.items():
                if not key.startswith("spark.sql.catalog."):
                    session.conf.set(key, value)
        except Exception as error:
            raise failures.typed(error, "Opening a Spark session") from error
        return session

    @staticmethod
    def _scala_context(shared: SharedJvm) -> Any:
        return shared.jvm.context._jsc.sc()

    def _start(self, stopping: threading.Event) -> None:
        def tell(phase: SparkPhase, detail: str = "") -> None:
            self._tell(phase, detail, unless=stopping)

        try:
            tell(SparkPhase.JAVA)
            java = find_java(self._settings.spark.java_home)
            self._java = str(java)
            tell(SparkPhase.JARS, self._java)
            jars = ensure_jars(self._cache, lambda text: tell(SparkPhase.JARS, text), java, stopping.is_set)
            tell(SparkPhase.STARTING, self._java)
            self._acquire(jars, launcher_home(java, self._cache), stopping)
            tell(SparkPhase.WARMING, self._java)
            self._warm_up()
            tell(SparkPhase.READY, self._java)
            self._look()  # its end is told to those who were ready
        except Exception as error:
            self._fail(failures.typed(error, "The start of Spark"), stopping)

    def _fail(self, failure: TrickleError, stopping: threading.Event) -> None:
        """Nothing of a start that failed is kept: the next one is a whole one."""
        with self._changed:
            if stopping.is_set():
                return
            shared, self._shared = self._shared, None
        if shared is not None:
            if not shared.jvm.alive():
                failure = SparkUnavailable(
                    "Spark ended while it started.",
                    detail=f"Its JVM's last words are in {shared.output}.",
                    hint="Start it again; if it was killed for memory, lower spark.driver_memory.",
                )
            release(shared, self._lost)
        self._tell(SparkPhase.FAILED, failure.message, failure, unless=stopping)

    def _acquire(self, jars: tuple[Path, ...], java_home: Path, stopping: threading.Event) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        wish = configuration(self._settings, jars, Path(), Path())
        output = self._logs / "jvm.log"
        shared = acquire(wish, output, lambda: self._launch(jars, java_home, output), self._lost)
        with self._changed:
            stopped = stopping.is_set()
            if not stopped:
                self._shared = shared
        if stopped:
            # while the JVM was being born: nobody else would end it
            release(shared, self._lost)
            raise SparkUnavailable("Spark was stopped.")

    def _launch(self, jars: tuple[Path, ...], java_home: Path, output: Path) -> Jvm:
        scratch = make_scratch()
        try:
            conf = configuration(self._settings, jars, self._logs, scratch)
            write_log_configuration(self._settings.spark.log_level, self._logs)
            _silence_console()
            return launch(conf, java_home, output, scratch)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise

    def _warm_up(self) -> None:
        """The first Delta commit, reading and local relation of a JVM take seconds: take them now."""
        import pyarrow as pa

        session = self.session()
        path = self._require().jvm.scratch / f"warm-{id(self)}"
        try:
            rows = session.createDataFrame(pa.table({"k": [1, 2], "v": [1, 2]}))
            for _ in range(2):
                rows.write.format("delta").mode("append").save(str(path))
            rows.createOrReplaceTempView("warm_up")
            session.sql(
                f"SELECT a.k, sum(a.v) AS v, count(*) AS n FROM delta.`{path}` a "  # noqa: S608  our own path
                "JOIN warm_up b ON a.k <=> b.k GROUP BY a.k"
            ).toArrow()
            session.catalog.dropTempView("warm_up")
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _tell(
        self,
        phase: SparkPhase,
        detail: str = "",
        failure: TrickleError | None = None,
        unless: threading.Event | None = None,
    ) -> None:
        with self._changed:
            if unless is not None and unless.is_set():
                return
            status = self._become(phase, detail, failure)
        self._report(status)

    def _become(self, phase: SparkPhase, detail: str = "", failure: TrickleError | None = None) -> SparkStatus:
        """Phase and failure change together, under the lock."""
        ready_at = datetime.now(UTC) if phase is SparkPhase.READY else None
        self._failure = failure
        self._status = SparkStatus(phase, detail, 0, self._status.started_at, ready_at)
        self._changed.notify_all()
        return self._status

    def _report(self, status: SparkStatus) -> None:
        try:
            self._on_status(status)
        except Exception:
            # a listener's bug must not end Spark
            log.exception("a listener of Spark's status failed")


def _is_not_from_gateway(record: logging.LogRecord) -> bool:
    return "/py4j/" not in record.pathname


def _silence_console() -> None:
    """PySpark and its gateway write failures to the terminal, which is the dashboard's; our errors tell them."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    # the gateway tells lost connections to the root logger itself
    logging.getLogger().addFilter(_is_not_from_gateway)
