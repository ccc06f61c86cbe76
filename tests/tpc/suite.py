"""The two benchmarks as the tests use them: their tables, their data and their queries.

The data comes from DuckDB's own generators, which are Python packages here. It is made once for each process, in a
schema of its own, and every lake is filled from there.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp

from engine.records import Column
from tests.support.fake_lake import FakeLake
from tests.support.view_test import spark_type

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Suite:
    name: str
    #: the statement of DuckDB that makes its tables, in the schema that is set
    generate: str

    @property
    def folder(self) -> Path:
        return HERE / self.name

    @property
    def relations(self) -> dict[str, tuple[Column, ...]]:
        return _relations(self.folder / "tables.sql")

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(sorted(int(path.stem[1:]) for path in (self.folder / "queries").glob("q*.sql")))

    def query(self, number: int) -> str:
        return (self.folder / "queries" / f"q{number:02}.sql").read_text(encoding="utf-8")

    def fill(self, lake: FakeLake) -> None:
        """Gives a lake's tables the benchmark's rows."""
        self._make(lake.db)
        for name in lake.tables:
            lake.load(name, f"SELECT * FROM {self.name}.{name}")

    def _make(self, db: duckdb.DuckDBPyConnection) -> None:
        found = db.execute("SELECT 1 FROM duckdb_schemas() WHERE schema_name = ?", [self.name]).fetchone()
        if found is not None:
            return
        cursor = db.cursor()
        cursor.execute("LOAD '" + str(extension(self.name)).replace("'", "''") + "'")
        cursor.execute(f"CREATE SCHEMA {self.name}; USE {self.name}; {self.generate}")
        shape = self.folder / "shape.sql"
        if shape.exists():
            cursor.execute(shape.read_text(encoding="utf-8"))


TPCH = Suite("tpch", "CALL dbgen(sf = 0.01)")
#: the smallest that the generator makes: it hangs on less
TPCDS = Suite("tpcds", "CALL dsdgen(sf = 0.01)")
SUITES = {suite.name: suite for suite in (TPCH, TPCDS)}


def extension(name: str) -> Path:
    """The generator for this very version of DuckDB, which loads no other."""
    package = importlib.resources.files(f"duckdb_extension_{name}")
    return Path(str(package / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"))


@cache
def _relations(path: Path) -> dict[str, tuple[Column, ...]]:
    found = {}
    for create in sqlglot.parse(path.read_text(encoding="utf-8"), dialect="spark"):
        assert isinstance(create, exp.Create)
        columns = tuple(Column(each.name, spark_type(each.kind)) for each in create.this.expressions)
        found[create.this.this.name] = columns
    return found
