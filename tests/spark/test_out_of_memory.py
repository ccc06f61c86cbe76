"""A task without memory takes its JVM along. The refresh that it belonged to is tried once more, frugally."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.lake import queries
from engine.lake.session import SparkHost
from tests.spark.test_session import script

pytestmark = pytest.mark.spark

BODY = """
from engine.lake import queries
from engine.lake.compute import SparkCompute
from engine.refresh.frugal import frugally_if_needed

compute, tries = SparkCompute(host), []
FITS = "SELECT count(*) AS n FROM range(10)"
ROWS = "SELECT repeat(CAST(id AS string), 200) AS s FROM range(9000000)"
TOO_MUCH = f"SELECT length(concat_ws('', collect_list(s))) AS n FROM ({ROWS})"

def attempt(sql):
    def once():
        compute.wait_ready()
        session = host.session()
        queries.tune(session, small=True)
        tries.append((host.jvm_pid, session.conf.get("spark.sql.autoBroadcastJoinThreshold")))
        return queries.collect(queries.run(session, sql[min(len(tries), len(sql)) - 1], "a test"), "a test").num_rows
    return once

print(frugally_if_needed(compute, "sums", attempt([TOO_MUCH, FITS])), flush=True)
(first, usual), (second, frugal) = tries
print(first != second, usual, frugal, flush=True)
queries.tune(host.session(), small=True)
print(host.session().conf.get("spark.sql.autoBroadcastJoinThreshold"), flush=True)
host.stop()
"""


def test_the_jvm_is_started_again_and_asked_for_less(tmp_path: Path) -> None:
    running = script(tmp_path, BODY, "local[2]")
    said, errors = running.communicate(timeout=300)
    _, *lines = said.splitlines()
    assert lines == ["1", "True 10485760 -1", "10485760"], errors


def test_what_is_frugal_broadcasts_nothing(spark_host: SparkHost) -> None:
    session = spark_host.session()
    query = "SELECT * FROM range(1000) AS a JOIN range(10) AS b USING (id)"
    for frugal, joined in ((False, "BroadcastHashJoin"), (True, "SortMergeJoin"), (False, "BroadcastHashJoin")):
        session._trickle_frugal = frugal  # type: ignore[attr-defined]
        queries.tune(session, small=True)
        assert joined in session.sql(query)._jdf.queryExecution().executedPlan().toString()
