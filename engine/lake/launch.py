"""The JVM that Spark runs in: its configuration, its birth and its certain death."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config.table import FIXED_CONF
from engine.errors import SparkUnavailable
from engine.lake.jars import spark_home

if TYPE_CHECKING:
    from pyspark import SparkContext

    from engine.config import Settings

SCRATCH_PREFIX = "trickle-spark-"

#: what a user's own [spark.conf] may change
DEFAULTS = {
    "spark.app.name": "trickle",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
    # one partition reads a small table's log faster than many
    "spark.databricks.delta.snapshotPartitions": "1",
    # a version's files are listed by name, which needs no job to look for them
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # of compiled code: a hundred, the default, are those of a few stream tables, and compiling takes long
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # PySpark looks for the caller's line at each call otherwise
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # every hash table and every sort takes a page as soon as it has a row, and small refreshes have many of both
    "spark.buffer.pageSize": "2m",
    "spark.scheduler.mode": "FAIR",
    # a cancelled refresh must not start its next job; this many cancelled ones are remembered
    "spark.scheduler.numCancelledJobGroupsToTrack": "1000",
}

FIXED = {
    **FIXED_CONF,
    # old versions stay readable as long as their files are there, however old they are
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"

#: how long a JVM whose connection broke is waited for; a living one does not break them
DYING_MS = 2000
#: so long the system may take to say with which code it ended
_ENDED_S = 10
#: Spark's own code for a JVM that it ends since a task found no memory left
_OUT_OF_MEMORY = 52

_environment_lock = threading.Lock()


@dataclass
class Jvm:
    """A running JVM and the Spark context in it."""

    process: subprocess.Popen[bytes]
    context: SparkContext
    scratch: Path
    local: bool

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None and not self._left_its_stdin(wait_ms=0)

    def lost_connection(self) -> None:
        """Of a dying process the system closes stdin and connections in any order: seen up to 10 ms apart. Who lost
        a connection calls this before asking whether it is alive."""
        self._left_its_stdin(wait_ms=DYING_MS)

    def died_of_memory(self) -> bool:
        """Of one that is dead, or about to be."""
        try:
            return self.process.wait(_ENDED_S) == _OUT_OF_MEMORY
        except subprocess.TimeoutExpired:
            return False

    def wait_for_death(self) -> None:
        if not self._left_its_stdin(wait_ms=None):
            self.process.wait()

    def _left_its_stdin(self, wait_ms: int | None) -> bool:
        """The system closes what a dying process holds long before it says that the process has ended."""
        if self.process.stdin is None:
            return False
        reader = select.poll()
        reader.register(self.process.stdin.fileno(), 0)
        return bool(reader.poll(wait_ms))

    def kill(self) -> None:
        """End it: at once where nobody else is concerned, politely where a cluster should hear of it."""
        if self.alive() and not self.local:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10.0)
        self.process.kill()
        self.process.wait()
        _forget_context(self.context)
        shutil.rmtree(self.scratch, ignore_errors=True)


def configuration(settings: Settings, jars: tuple[Path, ...], logs: Path, scratch: Path) -> dict[str, str]:
    """Everything that Spark is told, before it starts."""
    own = {key: str(value) for key, value in settings.spark.conf.items()}
    master = settings.spark.master
    parallelism = settings.spark.shuffle_partitions or os.cpu_count() or 1
    paths = ":".join(map(str, jars))
    result = {
        **DEFAULTS,
        "spark.master": master,
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.driver.extraClassPath": paths,
        "spark.sql.shuffle.partitions": str(parallelism),
        "spark.log.level": settings.spark.log_level,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **own,
        **FIXED,
    }
    if is_local(master) or master.startswith("local-cluster"):
        # no name to be resolved, nothing to be reached from outside
        result.setdefault("spark.driver.host", "127.0.0.1")
        result.setdefault("spark.driver.bindAddress", "127.0.0.1")
        # else VACUUM lists a folder in ten thousand tasks
        result.setdefault("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(parallelism))
    if not is_local(master):
        ours = ",".join(map(str, jars))
        result["spark.jars"] = ",".join(filter(None, (own.get("spark.jars"), ours)))
    if own.get("spark.driver.extraClassPath"):
        result["spark.driver.extraClassPath"] = f"{paths}:{own['spark.driver.extraClassPath']}"
    extensions = own.get("spark.sql.extensions", "")
    if DELTA_EXTENSION not in extensions:
        extensions = ",".join(filter(None, (extensions, DELTA_EXTENSION)))
    result["spark.sql.extensions"] = extensions
    options = (
        f'-Dlog4j2.configurationFile="{_log_configuration_file(logs).as_uri()}"',
        # libraries unpack themselves there, and we remove it
        f'-Djava.io.tmpdir="{scratch}"',
        "-XX:-UsePerfData",
        own.get("spark.driver.extraJavaOptions", ""),
    )
    result["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    return result


def is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def launch(conf: Mapping[str, str], java_home: Path, output: Path, scratch: Path) -> Jvm:
    """Start the JVM. Its output goes to a file: the terminal belongs to the dashboard."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    spark_conf = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        spark_conf.set(key, value)
    with output.open("ab") as log, _environment(java_home):
        try:
            # a session of its own: Ctrl-C in the terminal is the dashboard's; its open stdin ends it with us
            streams: dict[str, Any] = {"stdout": log, "stderr": log, "start_new_session": True}
            gateway = launch_gateway(spark_conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
        except Exception as error:
            raise _not_started(output, error) from error
    process: subprocess.Popen[bytes] = gateway.proc
    try:
        context = SparkContext(gateway=gateway, conf=spark_conf)
    except Exception as error:
        process.kill()
        process.wait()
        _forget_context(None)
        raise _not_started(output, error) from error
    _expect_the_end(context)
    return Jvm(process, context, scratch, is_local(conf["spark.master"]))


def make_scratch() -> Path:
    """A folder for what Spark spills; those of killed processes are swept on the way."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{SCRATCH_PREFIX}*"):
        pid = left.name.removeprefix(SCRATCH_PREFIX).split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-"))


def _log_configuration_file(logs: Path) -> Path:
    return logs.resolve() / "log4j2.properties"


def write_log_configuration(level: str, logs: Path) -> None:
    _log_configuration_file(logs).write_text(
        "\n".join(
            (
                "# written at each start of Spark; spark.log_level in trickle.toml sets the level",
                "appenders = file",
                "appender.file.type = RollingFile",
                "appender.file.name = file",
                f"appender.file.fileName = {logs / 'spark.log'}",
                f"appender.file.filePattern = {logs / 'spark-%i.log'}",
                "appender.file.layout.type = PatternLayout",
                "appender.file.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%ex",
                "appender.file.policies.type = Policies",
                "appender.file.policies.size.type = SizeBasedTriggeringPolicy",
                "appender.file.policies.size.size = 20MB",
                "appender.file.strategy.type = DefaultRolloverStrategy",
                "appender.file.strategy.max = 3",
                f"rootLogger.level = {level.lower()}",
                "rootLogger.appenderRefs = file",
                "rootLogger.appenderRef.file.ref = file",
                "",
            )
        )
    )


@contextmanager
def _environment(java_home: Path) -> Iterator[None]:
    """Spark's launcher is told by environment variables which Java and which Spark to take."""
    ours = {"JAVA_HOME": str(java_home), "SPARK_HOME": str(spark_home())}
    with _environment_lock:
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _expect_the_end(context: SparkContext) -> None:
    """PySpark's server of accumulators prints a traceback to the terminal when the JVM leaves it."""
    server = context._accumulatorServer
    if server is not None:
        server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]


def _forget_context(context: SparkContext | None) -> None:
    """PySpark keeps its one context and gateway for ever; without them it can start another one."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # the JVM behind them is gone: what they have to say about it no longer matters
    if context is not None and context._accumulatorServer is not None:
        with suppress(Py4JError, OSError):
            context._accumulatorServer.shutdown()
    gateway = SparkContext._gateway
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _not_started(output: Path, error: Exception) -> SparkUnavailable:
    try:
        said = output.read_text(errors="replace").strip().splitlines()[-8:]
    except OSError:
        said = []
    return SparkUnavailable(
        "Spark did not start.",
        detail="\n".join(said) or str(error),
        hint=f"The JVM's output is in {output}; check spark.master, spark.driver_memory and spark.java_home.",
    )
