"""The process that gets killed: an engine over a prepared workspace, which does what it is told until it dies.

Orders come in on stdin and what happened goes out on stdout, as one JSON object a line; `ready` comes first. Its JVM
is its own, or, where the environment names a gateway, one that another process keeps: that costs no start, and what
such a child left running in Spark when it died goes on to its end.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.engine import Engine
from engine.errors import TrickleError
from engine.failpoints import FAILPOINTS, Failpoint
from engine.lake import session
from engine.lake.launch import Jvm

#: what PySpark itself reads to find a JVM that is there already
PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
#: the pid of that JVM
KEPT = "TRICKLE_TEST_JVM"


def main(folder: Path) -> None:
    if PORT in os.environ:
        session.launch = lambda conf, java_home, output, scratch: kept_jvm(scratch)
        # it is warm
        session.SparkHost._warm_up = lambda self: None  # type: ignore[method-assign]
    with Engine.open(folder, start_spark=True) as engine:
        engine.wait_for_spark(240)
        say("ready", jvm=engine._host.jvm_pid, gateway=gateway())
        for line in sys.stdin:
            order = json.loads(line)
            arm(order["failpoints"])
            try:
                say("done", **obey(engine, order))
            except TrickleError as error:
                say("failed", error=type(error).__name__, retryable=error.retryable, text=str(error))


def obey(engine: Engine, order: Mapping[str, Any]) -> dict[str, Any]:
    name = order["name"]
    match order["do"]:
        case "refresh":
            record = engine.refresh_stream_table(name)
            return {"outcome": record.outcome.value, "strategy": record.strategy, "sequence": record.sequence}
        case "create":
            engine.create_stream_table(name, order["query"], refresh_mode="DIFFERENTIAL")
            return {}
        case "alter":
            engine.alter_stream_table(name, query=order["query"])
            return {}
        case "write":
            engine.change_source(order["query"])
            return {}
        case "drop":
            engine.drop_stream_table(name)
            return {}
        case "count jobs":
            return {"jobs": engine.spark_status().running_jobs}
        case unknown:
            raise ValueError(unknown)


def arm(failpoints: str) -> None:
    """For this order alone: counts begin anew, and each point that is passed is told before it acts."""
    FAILPOINTS.passed.clear()
    FAILPOINTS.on_pass = tell if failpoints else lambda point: None
    os.environ["TRICKLE_FAILPOINTS"] = failpoints or f"{Failpoint.REMOVED}=sleep@{sys.maxsize}"
    FAILPOINTS.arm_from(os.environ)


def tell(point: Failpoint) -> None:
    say("passed", point=point.value)


def say(what: str, **more: object) -> None:
    print(json.dumps({"said": what, **more}), flush=True)


def gateway() -> dict[str, str]:
    """How another process can use this JVM."""
    from pyspark import SparkContext

    found = SparkContext._gateway.java_parameters  # type: ignore[union-attr]
    return {PORT: str(found.port), SECRET: found.auth_token}


def kept_jvm(scratch: Path) -> Jvm:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    there = launch_gateway()  # type: ignore[no-untyped-call]
    spark = there.jvm.JavaSparkContext(there.jvm.org.apache.spark.SparkContext.getOrCreate())
    return Jvm(Kept(int(os.environ[KEPT])), SparkContext(gateway=there, jsc=spark), scratch, True)  # type: ignore[arg-type]


class Kept:
    """A JVM that this process did not start and does not end."""

    stdin = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> None:
        return None

    def wait(self, timeout: float | None = None) -> None:
        threading.Event().wait(timeout)

    def kill(self) -> None:
        """Its keeper does."""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
