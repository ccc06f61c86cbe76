"""A shop with orders, and an engine that knows them, for tests on a real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.lake.session import SparkHost
from tests.spark.shop import Shop, opened


@pytest.fixture
def shop(tmp_path: Path, spark_host: SparkHost) -> Shop:
    return Shop(tmp_path / "shop")


@pytest.fixture
def engine(tmp_path: Path, shop: Shop) -> Iterator[Engine]:
    with opened(tmp_path / "ws", shop) as made:
        yield made
