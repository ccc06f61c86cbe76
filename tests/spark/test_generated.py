"""Spark understands every text that the generator writes, and gives its columns the types that the stand-in gives."""

from __future__ import annotations

import pytest

from engine.lake.session import SparkHost
from tests.properties.features import weights
from tests.properties.generator.queries import Generator
from tests.properties.oracles import partitions, unoptimized
from tests.support.duck_analyzer import DuckAnalyzer
from tests.support.spark_lake import SparkAnalyzer

pytestmark = pytest.mark.spark

SEEDS = range(0, 150, 25)
#: with what only Spark does as Spark does it
CHOSEN = weights(spark=True)


@pytest.mark.parametrize("first", SEEDS)
def test_spark_accepts_every_text(first: int, spark_host: SparkHost) -> None:
    for seed in range(first, first + SEEDS.step):
        case = Generator(seed, CHOSEN).case()
        queries = [case.query]
        if seed % 5 == 0:
            queries += [unoptimized(case.query), *(partitions(case, seed, CHOSEN) or ())]
        analyzer, stand_in = SparkAnalyzer(spark_host, case.relations), DuckAnalyzer(case.relations)
        for query in queries:
            text = query.sql()
            assert _types(stand_in, text) == _types(analyzer, text), f"seed {seed}: {text}"


def _types(analyzer: DuckAnalyzer | SparkAnalyzer, text: str) -> list[str]:
    return [column.type for column in analyzer.describe(text)]
