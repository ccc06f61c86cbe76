"""One Spark for each process that runs tests: a JVM costs seconds, a session of it costs nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine import config
from engine.lake.session import SparkHost
from engine.refresh import costs
from tests.support.garbage import collect_seldom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; look at the difference")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        os.environ["TRICKLE_UPDATE_GOLDEN"] = "1"
    collect_seldom()
    _one_user_for_all(config)


#: For queries over a handful of rows, no two of which are alike: nothing that only pays when it is done again.
#: What people get is measured by `make bench`, and shown by the demo's test, with nothing of this.
USER_FILE = """\
[spark.conf]
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"spark.driver.extraJavaOptions" = "-XX:+UseSerialGC"
"""


def _one_user_for_all(config: pytest.Config) -> None:
    """Every engine of the run reads this user's settings: they share one JVM, so they must be the same."""
    home = Path(tempfile.mkdtemp(prefix="trickle-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    (home / "trickle").mkdir()
    (home / "trickle" / "trickle.toml").write_text(USER_FILE, encoding="utf-8")
    os.environ["XDG_CONFIG_HOME"] = str(home)


#: tests of what a refresh costs; to all others the clock of a busy machine must not matter
PRICED = ("test_refresh_mode", "test_costs")


@pytest.fixture(autouse=True)
def no_refresh_is_full_because_it_took_long(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.stem not in PRICED:
        monkeypatch.setattr(costs, "LEAST_GAIN_MS", float("inf"))


@pytest.fixture(scope="session")
def spark_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkHost]:
    """Started when the first test asks for it. Engines of the same settings share its JVM."""
    settings = config.load(tmp_path_factory.mktemp("spark-workspace"))
    host = SparkHost(settings, tmp_path_factory.mktemp("spark-logs"))
    host.start()
    host.wait_ready(240)
    yield host
    host.stop()


@pytest.fixture
def spark(spark_host: SparkHost) -> SparkSession:
    return spark_host.session()


@pytest.fixture
def delta_path(tmp_path: Path) -> str:
    """Where a test may make its table; the name holds what a user's folder may hold."""
    return str(tmp_path / "it's a table")
