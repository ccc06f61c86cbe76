"""Spark as a service of this process: started in the background, one session per thread, ended at once."""

from __future__ import annotations

import atexit
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import SparkUnavailable, TrickleError
from engine.lake import failures
from engine.lake.jars import default_cache, ensure_jars
from engine.lake.java import find_java, launcher_home
from engine.lake.launch import FIXED, Jvm, configuration, launch, make_scratch, write_log_configuration
from engine.records import Column, SparkPhase, SparkStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.config import Settings

log = logging.getLogger(__name__)

CANCEL_AGAIN_S = 0.2

#: PySpark can hold one JVM per process: hosts of one configuration share it
_shared_lock = threading.Lock()
_shared: list[_Shared] = []


@dataclass(frozen=True)
class Analysis:
    """What Spark knows about a query without running it."""

    columns: tuple[Column, ...]
    duration_ms: float


@dataclass
class _Shared:
    jvm: Jvm
    wish: Mapping[str, str]
    users: int = 1
    sessions: threading.local = field(default_factory=threading.local)


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
        self._shared: _Shared | None = None
        self._starter: threading.Thread | None = None
        self._stopping = threading.Event()
        self._java = ""
        #: what is being worked under now
        self._tags: set[str] = set()

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin starting, in the background; nothing happens when it runs or is on its way."""
        with self._changed:
            if self._starter is not None and self._starter.is_alive():
                return
            if self._status.phase is SparkPhase.READY and self._shared and self._shared.jvm.alive():
                return
            self._stopping.clear()
            self._failure = None
            self._status = SparkStatus(SparkPhase.JAVA, started_at=datetime.now(UTC))
            self._starter = threading.Thread(target=self._start, name="spark-start", daemon=True)
            self._starter.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """End Spark at once, with whatever runs in it: what was committed stays, the rest never was."""
        self._stopping.set()
        with self._changed:
            shared, self._shared = self._shared, None
            started = self._status.phase is not SparkPhase.NOT_STARTED
        if shared is not None:
            _release(shared)
        if started:
            self._tell(SparkPhase.STOPPED)
        atexit.unregister(self.stop)

    def status(self) -> SparkStatus:
        status = self._status
        if status.phase is not SparkPhase.READY:
            return status
        return SparkStatus(status.phase, status.detail, self.running_jobs(), status.started_at, status.ready_at)

    @property
    def is_ready(self) -> bool:
        """Can queries run now? Costs nothing to ask."""
        return self._status.phase is SparkPhase.READY

    def wait_ready(self, timeout_s: float | None = None) -> None:
        """Wait until queries can run; SparkUnavailable says why they never will."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while True:
                phase = self._status.phase
                if phase is SparkPhase.READY:
                    return
                if self._failure is not None:
                    raise self._failure
                if phase is SparkPhase.NOT_STARTED:
                    raise SparkUnavailable("Spark was not started.")
                if phase is SparkPhase.STOPPED:
                    raise SparkUnavailable("Spark was stopped.")
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
        context = self._require().jvm.context
        context.setJobGroup(tag, tag, interruptOnCancel=False)
        self._tags.add(tag)
        try:
            yield
        finally:
            self._tags.discard(tag)
            if self._shared is not None and self._shared.jvm.alive():
                context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
                context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]

    def cancel(self, tag: str) -> None:
        """Stop what runs under the tag and what would be started under it later. Tags are used once.

        Its jobs end at once. Their tasks look for that with each batch of rows they read: one that makes very much of
        few rows (a cross join) keeps its core until its batch is done. What it writes is nobody's.
        """
        self._cancel(tag)
        if tag in self._tags:
            threading.Thread(target=self._cancel_until_left, args=(tag,), name="spark-cancel", daemon=True).start()

    def _cancel(self, tag: str) -> None:
        shared = self._shared
        if shared is not None and shared.jvm.alive():
            self._scala_context(shared).cancelJobGroupAndFutureJobs(tag)

    def _cancel_until_left(self, tag: str) -> None:
        """Seen with Spark 4.2: it refuses the jobs of a cancelled group, but not the shuffle stages that adaptive
        execution starts by themselves. So it is told again for as long as somebody works under the tag."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):  # the JVM is gone, and what ran with it
            while tag in self._tags and not self._stopping.wait(CANCEL_AGAIN_S):
                self._cancel(tag)

    def running_jobs(self) -> int:
        from py4j.protocol import Py4JError

        shared = self._shared
        if shared is None or not shared.jvm.alive():
            return 0
        try:
            return len(shared.jvm.context.statusTracker().getActiveJobsIds())
        except (Py4JError, OSError):
            return 0

    def analyze(self, sql: str) -> Analysis:
        """Names and types of a query's columns; a typed error with its place if Spark does not accept it."""
        started = time.perf_counter()
        frame = self._frame(sql)
        columns = tuple(Column(item.name, item.dataType.simpleString(), item.nullable) for item in frame.schema.fields)
        return Analysis(columns, (time.perf_counter() - started) * 1000)

    def same_semantics(self, sql_a: str, sql_b: str) -> bool:
        """Does Spark see the same query in both?

        Frames have a `sameSemantics` of their own, which finds a CTE different from itself, and DATE '2020-01-01'
        from a cast of the string. So plans are compared after the numbers of CTEs are normalised and constants are
        folded: rules of Spark's optimizer that look at nothing but the plan.
        """
        return bool(self._plain_plan(sql_a).sameResult(self._plain_plan(sql_b)))

    def _plain_plan(self, sql: str) -> Any:
        rules = self._require().jvm.context._jvm.org.apache.spark.sql.catalyst.optimizer  # type: ignore[union-attr]
        plan = self._frame(sql)._jdf.queryExecution().normalized()
        for rule in (rules.ReplaceExpressions, rules.ConstantFolding, rules.BooleanSimplification):
            plan = rule.apply(plan)
        return plan

    # -- inside -------------------------------------------------------------------------------------------

    def _frame(self, sql: str) -> Any:
        session = self.session()
        try:
            frame = session.sql(sql)
            frame.schema  # noqa: B018  analysis of types happens here at the latest
        except Exception as error:
            raise failures.of_query(error, sql) from error
        return frame

    def _require(self) -> _Shared:
        shared = self._shared
        if shared is None or not shared.jvm.alive():
            if self._failure is not None:
                raise self._failure
            raise SparkUnavailable(
                "Spark is not running.",
                detail=f"It is {self._status.phase.value}.",
                hint="Wait until it is ready.",
            )
        return shared

    def _new_session(self, shared: _Shared) -> SparkSession:
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
    def _scala_context(shared: _Shared) -> Any:
        return shared.jvm.context._jsc.sc()

    def _start(self) -> None:
        try:
            self._tell(SparkPhase.JAVA)
            java = find_java(self._settings.spark.java_home)
            self._java = str(java)
            self._tell(SparkPhase.JARS, self._java)
            jars = ensure_jars(self._cache, lambda text: self._tell(SparkPhase.JARS, text), java, self._stopping.is_set)
            self._tell(SparkPhase.STARTING, self._java)
            self._acquire(jars, launcher_home(java, self._cache))
            self._tell(SparkPhase.WARMING, self._java)
            self._warm_up()
        except Exception as error:
            if not self._stopping.is_set():
                self._fail(failures.typed(error, "The start of Spark"))
            return
        if not self._stopping.is_set():
            self._tell(SparkPhase.READY, self._java)
            self._watch()

    def _acquire(self, jars: tuple[Path, ...], java_home: Path) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        wish = configuration(self._settings, jars, Path(), Path())
        with _shared_lock:
            for shared in _shared:
                if shared.jvm.alive():
                    if dict(shared.wish) != wish:
                        raise SparkUnavailable(
                            "This process already runs Spark with other settings.",
                            hint="Close the other engine first, or give both the same [spark] settings.",
                        )
                    shared.users += 1
                    self._shared = shared
                    return
            _shared.clear()
            scratch = make_scratch()
            try:
                conf = configuration(self._settings, jars, self._logs, scratch)
                write_log_configuration(self._settings.spark.log_level, self._logs)
                _silence_console()
                jvm = launch(conf, java_home, self._logs / "jvm.log", scratch)
            except BaseException:
                shutil.rmtree(scratch, ignore_errors=True)
                raise
            shared = _Shared(jvm, wish)
            _shared.append(shared)
            self._shared = shared
        if self._stopping.is_set():
            # stopped while the JVM was being born: nobody else would end it
            self._shared = None
            _release(shared)

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

    def _watch(self) -> None:
        """Tell when the JVM dies by itself."""
        shared = self._shared
        if shared is None:
            return
        code = shared.jvm.process.wait()
        if self._stopping.is_set() or self._shared is not shared:
            return
        with _shared_lock:
            if shared in _shared:
                _shared.remove(shared)
                shared.jvm.kill()
        self._shared = None
        self._fail(
            SparkUnavailable(
                "Spark ended by itself.",
                detail=f"Its JVM ended with code {code}; its last words are in {self._logs / 'jvm.log'}.",
                hint="Start it again; if it was killed for memory, lower spark.driver_memory.",
            )
        )

    def _fail(self, failure: TrickleError) -> None:
        with self._changed:
            self._failure = failure
        self._tell(SparkPhase.FAILED, failure.message)

    def _tell(self, phase: SparkPhase, detail: str = "") -> None:
        with self._changed:
            before = self._status
            ready_at = datetime.now(UTC) if phase is SparkPhase.READY else None
            self._status = SparkStatus(phase, detail, 0, before.started_at, ready_at)
            self._changed.notify_all()
            status = self._status
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


def _release(shared: _Shared) -> None:
    with _shared_lock:
        shared.users -= 1
        if shared.users > 0:
            return
        if shared in _shared:
            _shared.remove(shared)
    shared.jvm.kill()
