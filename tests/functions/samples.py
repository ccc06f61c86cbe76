"""The calls of samples.txt, and the relation that they read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

#: one column of each type that functions ask for
COLUMNS = {
    "b": "boolean",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "n": "decimal(10,2)",
    "s": "string",
    "x": "binary",
    "dt": "date",
    "ts": "timestamp",
    "nt": "timestamp_ntz",
    "tm": "time(6)",
    "a": "array<int>",
    "w": "array<string>",
    "q": "array<float>",
    "m": "map<string,int>",
    "r": "struct<a:int,b:string>",
    "e": "array<struct<a:int,b:string>>",
    "v": "variant",
}


@dataclass(frozen=True)
class Sample:
    name: str
    #: the section that it stands in
    kind: str
    volatility: str
    call: str

    @property
    def query(self) -> str:
        return self.call if self.call.startswith("SELECT") else f"SELECT {self.call} FROM samples"


def samples(file: str = "samples.txt") -> tuple[Sample, ...]:
    found: list[Sample] = []
    kind = volatility = ""
    for line in (HERE / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind, volatility = line.strip("[]").split()
        elif line and not line.startswith("#"):
            name, call = line.split(None, 1)
            found.append(Sample(name, kind, volatility, call))
    return tuple(found)


def relation(rows: int) -> str:
    """A query with the columns of `samples`, all NULL, of so many rows."""
    nulls = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in COLUMNS.items())
    return f"SELECT {nulls} FROM range({rows})"
