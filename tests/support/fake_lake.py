"""A lake of versioned tables in DuckDB's memory, with stream tables that are refreshed as the engine does it.

There is one lake at a time: a new one replaces the one before.

Sources have a present version, the version at the frontier and the weighted rows that DML changed in between,
recorded per statement as a change feed does: an UPDATE gives each row's image before and after, also where they are
equal, and a row that was inserted and deleted again leaves both traces.

Applying a change set asserts what the protocol promises: what is replaced or deleted is there exactly once, and no
two rows have one identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, lru_cache

import duckdb
import sqlglot
from sqlglot import exp

from engine.algebra.dialect import Spark4
from engine.algebra.nodes import WEIGHT, Leaf, Node, Role
from engine.compile.bind import STATEMENT_RULES, Change, bind
from engine.compile.keep import OP, POSITION, SEQUENCE, Kept
from engine.compile.plan import MaintenancePlan
from engine.compile.render import render
from engine.errors import NegativeMultiplicity
from engine.records import Column
from tests.support.duck_analyzer import for_duckdb
from tests.support.duckdb_of_tests import connect
from tests.support.multisets import same_rows, written

Row = tuple[object, ...]

STORED, NET, CHANGE_SET = "stored@table", "net@change", "change@set"
#: from so many rows on, the old version of a table follows by its change instead of being copied
LARGE = 2_000
#: more than any test means to look at; a join of a join of a recursion can have billions
ROWS_MAX = 1_000_000


class Contradiction(AssertionError):
    """A change set does not fit what is stored: the protocol would refuse to commit it."""


class TooManyRows(Exception):
    """Nobody can look at them."""


class FakeLake:
    """Source tables and what happened to them since the frontier."""

    def __init__(self, tables: Mapping[str, tuple[Column, ...]]) -> None:
        self.tables = dict(tables)
        self.db = _connection().cursor()
        self.db.execute("DROP SCHEMA IF EXISTS lake CASCADE; CREATE SCHEMA lake; USE lake")
        self.kinds: dict[str, Change] = {}
        self._rendered: dict[int, tuple[Node, str]] = {}
        for name, columns in tables.items():
            self.db.execute(f"CREATE TABLE {quoted(name)} ({_declared(columns)})")
            self.db.execute(f"CREATE TABLE {quoted(name + '@old')} ({_declared(columns)})")
            weighted = (*columns, Column(WEIGHT, "int"))
            self.db.execute(f"CREATE TABLE {quoted(name + '@delta')} ({_declared(weighted)})")

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Rows that are there from the start."""
        self._put(table, rows)

    def load(self, table: str, query: str) -> None:
        """The same for many rows: what a query of DuckDB gives."""
        self.db.execute(f"INSERT INTO {quoted(table)} {query}")

    def _put(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            # Written out, because binding values makes DuckDB look for Python modules, each time.
            values = ", ".join("(" + ", ".join(map(_literal, row)) + ")" for row in rows)
            self.db.execute(f"INSERT INTO {quoted(table)} VALUES {values}")

    def run(self, dml: str) -> None:
        """Statements in Spark's dialect that change sources: INSERT, UPDATE, DELETE."""
        for each in _statements(dml):
            name = next(name for name in self.tables if name.casefold() == each.table)
            match each.kind:
                case "insert":
                    self._record(name, self.rows(f"{each.sql} RETURNING *"), 1, Change.APPEND)
                case "delete":
                    self._note(name, f"SELECT *, -1 FROM {quoted(name)} {each.where}")
                    self.db.execute(each.sql)
                case "update":
                    self._note(name, f"SELECT *, -1 FROM {quoted(name)} {each.where}")
                    self._note(name, f"SELECT * REPLACE ({each.sets}), 1 FROM {quoted(name)} {each.where}")
                    self.db.execute(each.sql)

    def _note(self, name: str, weighted: str) -> None:
        """Rows that go, or are another than they were."""
        if self._count(f"INSERT INTO {quoted(name + '@delta')} {weighted}"):
            self.kinds[name] = Change.MIXED

    # The same in DuckDB's own words, for those who have them: nothing is parsed then.

    def append(self, name: str, select: str) -> None:
        self.db.execute(f'CREATE OR REPLACE TEMP TABLE "@added" AS {select}')
        if self._count(f'INSERT INTO {quoted(name)} SELECT * FROM "@added"'):
            self.db.execute(f'INSERT INTO {quoted(f"{name}@delta")} SELECT *, 1 FROM "@added"')
            self.kinds.setdefault(name, Change.APPEND)

    def delete(self, name: str, where: str) -> None:
        self._note(name, f"SELECT *, -1 FROM {quoted(name)} {where}")
        self.db.execute(f"DELETE FROM {quoted(name)} {where}")

    def update(self, name: str, sets: Sequence[tuple[str, str]], where: str) -> None:
        replaced = ", ".join(f"({value}) AS {column}" for column, value in sets)
        self._note(name, f"SELECT *, -1 FROM {quoted(name)} {where}")
        self._note(name, f"SELECT * REPLACE ({replaced}), 1 FROM {quoted(name)} {where}")
        new = ", ".join(f"{column} = {value}" for column, value in sets)
        self.db.execute(f"UPDATE {quoted(name)} SET {new} {where}")

    def _record(self, name: str, rows: Sequence[Row], weight: int, kind: Change) -> None:
        self._put(f"{name}@delta", [(*row, weight) for row in rows])
        if rows and self.kinds.get(name) is not Change.MIXED:
            self.kinds[name] = kind

    def take_out(self, name: str) -> Row | None:
        """One row less, whichever; None where there is none."""
        first = f"SELECT min(rowid) FROM {quoted(name)}"
        rows = self.rows(f"DELETE FROM {quoted(name)} WHERE rowid = ({first}) RETURNING *")
        self._record(name, rows, -1, Change.MIXED)
        return rows[0] if rows else None

    def put_back(self, name: str, row: Row) -> None:
        self._put(name, [row])
        self._record(name, [row], 1, Change.APPEND)

    def count_of(self, name: str) -> int:
        return self._count(f"SELECT count(*) FROM {quoted(name)}")

    def replace(self, name: str, query: str) -> None:
        """What is there now is known from elsewhere, and is no change to be told of."""
        self.db.execute(f"DELETE FROM {quoted(name)}")
        self.load(name, query)
        self._copy(name)
        self.db.execute(f"DELETE FROM {quoted(f'{name}@delta')}")
        self.kinds.pop(name, None)

    def _count(self, sql: str) -> int:
        row = self.db.execute(sql).fetchone()
        assert row is not None
        return int(row[0])

    def advance(self) -> None:
        """The present becomes the frontier."""
        for name in self.kinds:
            if self._count(f"SELECT count(*) FROM {quoted(name + '@old')}") < LARGE:
                self._copy(name)
            else:
                self._follow(name)
            self.db.execute(f"DELETE FROM {quoted(name + '@delta')}")
        self.kinds.clear()

    def _copy(self, name: str) -> None:
        self.db.execute(f"DELETE FROM {quoted(name + '@old')}")
        self.db.execute(f"INSERT INTO {quoted(name + '@old')} SELECT * FROM {quoted(name)}")

    def _follow(self, name: str) -> None:
        """Carries the change of a table into its old version: copying a large one takes longer than a refresh."""
        columns = [quoted(column.name) for column in self.tables[name]]
        listed, old = ", ".join(columns), quoted(f"{name}@old")
        same = " AND ".join(f"o.{column} IS NOT DISTINCT FROM n.{column}" for column in columns)
        # No column of a table has a name with @.
        self.db.execute(
            f'CREATE OR REPLACE TEMP TABLE net AS SELECT {listed}, sum({quoted(WEIGHT)})::int AS "@copies",'
            f' row_number() OVER () AS "@id" FROM {quoted(f"{name}@delta")} GROUP BY {listed} HAVING "@copies" <> 0'
        )
        # Rows are compared as a whole only where their first columns look alike.
        alike = f"hash({', '.join(columns[:2])})"
        self.db.execute(
            f'CREATE OR REPLACE TEMP TABLE near AS SELECT rowid AS "@place", * FROM {old}'
            f' WHERE {alike} IN (SELECT {alike} FROM net WHERE "@copies" < 0)'
        )
        self.db.execute(
            f'DELETE FROM {old} WHERE rowid IN (SELECT "@place" FROM (SELECT "@place", "@copies", row_number() OVER'
            f' (PARTITION BY "@id") AS number FROM near AS o JOIN net AS n ON {same}) WHERE number <= -"@copies")'
        )
        self.db.execute(f'INSERT INTO {old} SELECT {listed} FROM net, range("@copies") WHERE "@copies" > 0')

    def settle(self) -> None:
        """The same for rows that were there from the start."""
        for name in self.tables:
            self._copy(name)
            self.db.execute(f"DELETE FROM {quoted(name + '@delta')}")
        self.kinds.clear()

    def recompute(self, query: str, columns: Sequence[Column]) -> list[Row]:
        """What the query as its author wrote it gives now."""
        return self.rows(self.recomputation(query, columns))

    def recomputation(self, query: str, columns: Sequence[Column]) -> str:
        names = [f"c{number}" for number, _ in enumerate(columns)]
        cast = ", ".join(f"CAST({name} AS {duck_type(c.type)})" for name, c in zip(names, columns, strict=True))
        return f"SELECT {cast} FROM ({for_duckdb(query)}) AS q({', '.join(names)})"

    def evaluate(self, tree: Node) -> list[Row]:
        """What a tree of the algebra gives now, in its own types."""
        cast = ", ".join(f"CAST({quoted(c.name)} AS {duck_type(c.type)})" for c in tree.columns)
        return self.rows(f"SELECT {cast} FROM ({self.sql(tree)}) AS q")

    def rows(self, sql: str) -> list[Row]:
        found = self.db.execute(sql).fetchmany(ROWS_MAX)
        if len(found) == ROWS_MAX:
            raise TooManyRows(f"{ROWS_MAX:,} rows and more: {sql}")
        return found

    def sql(self, tree: Node) -> str:
        """The tree as a query for DuckDB. Remembered: a full refresh is asked for after every step."""
        known = self._rendered.get(id(tree))
        if known is None or known[0] is not tree:
            known = self._rendered[id(tree)] = (tree, render(tree, _place, "duckdb"))
        return known[1]


@dataclass
class FakeStreamTable:
    """One stream table on a lake: populated once, then refreshed by change sets."""

    lake: FakeLake
    plan: MaintenancePlan
    sequence: int = 0
    #: the ops of the last change set, counted
    last_ops: dict[str, int] = field(default_factory=dict)
    #: how often a shortcut could not tell
    doubts: int = 0

    @property
    def kept(self) -> Kept:
        assert self.plan.kept is not None, "this query cannot be maintained"
        return self.plan.kept

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.kept.columns

    def populate(self) -> None:
        db = self.lake.db
        db.execute(f"CREATE OR REPLACE TABLE {quoted(STORED)} ({_declared(self.columns)})")
        self.sequence = 1
        full = self.lake.sql(self.kept.full)
        db.execute(f"INSERT INTO {quoted(STORED)} ({_list(c.name for c in self.kept.full.columns)}) {full}")
        if self.kept.by_row:
            db.execute(f"UPDATE {quoted(STORED)} SET {quoted(SEQUENCE)} = 1, {quoted(POSITION)} = rowid")
        self.lake.settle()

    def refresh(self, rules: tuple = STATEMENT_RULES) -> None:
        """Carries the sources' changes into the stored table, as one change set."""
        statements = bind(self.kept, self.lake.kinds, rules)
        self.sequence += 1
        self.last_ops = {}
        if not statements.is_empty:
            if statements.first is not None:
                self.materialize_net(statements.first)
            if statements.shortcut is not None:
                self._check_shortcut(statements.shortcut)
            columns = (Column(OP, "string"), *self.columns)
            self._materialize(CHANGE_SET, columns, statements.change)
            self._check_ops(statements.appends)
            if self.last_ops:
                self._apply()
        self.lake.advance()

    def materialize_net(self, first: Node) -> None:
        """Runs a first statement, whose result the second one reads."""
        self._materialize(NET, first.columns, first)

    def _check_shortcut(self, shortcut: Node) -> None:
        """It says what the first statement says, or that it cannot tell."""
        net = [column.name for column in shortcut.columns]
        told, known = self.lake.evaluate(shortcut), self.lake.rows(f"SELECT {_list(net)} FROM {quoted(NET)}")
        self.doubts += any(row[net.index(WEIGHT)] is None for row in told)
        if not any(row[net.index(WEIGHT)] is None for row in told) and not same_rows(told, known):
            raise Contradiction(f"the shortcut says\n{written(told)}\nand the first statement\n{written(known)}")

    def _materialize(self, name: str, columns: tuple[Column, ...], tree: Node) -> None:
        assert [c.name for c in tree.columns] == [c.name for c in columns], "the change set has other columns"
        chosen = ", ".join(f"CAST({quoted(c.name)} AS {duck_type(c.type)}) AS {quoted(c.name)}" for c in columns)
        self.lake.db.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT {chosen} FROM ({self.lake.sql(tree)})")

    def _check_ops(self, appends: bool) -> None:
        counted = self.lake.rows(f"SELECT {quoted(OP)}, count(*) FROM {quoted(CHANGE_SET)} GROUP BY ALL")
        self.last_ops = {str(op): int(str(count)) for op, count in counted}
        if "X" in self.last_ops:
            example = self.lake.rows(f"SELECT * FROM {quoted(CHANGE_SET)} WHERE {quoted(OP)} = 'X'")[0]
            raise NegativeMultiplicity("the change contradicts what is stored", detail=str(example))
        if appends and set(self.last_ops) - {"I"}:
            raise Contradiction(f"a change that only inserts has {self.last_ops}")

    def _apply(self) -> None:
        db = self.lake.db
        if self.kept.by_row:
            db.execute(
                f"UPDATE {quoted(CHANGE_SET)} SET {quoted(SEQUENCE)} = {self.sequence}, {quoted(POSITION)} = rowid"
                f" WHERE {quoted(OP)} = 'I'"
            )
        same = " AND ".join(f"s.{quoted(n)} IS NOT DISTINCT FROM c.{quoted(n)}" for n in self.kept.identity)
        replaced = self.last_ops.get("U", 0) + self.last_ops.get("D", 0)
        gone = self.lake._count(
            f"DELETE FROM {quoted(STORED)} AS s USING {quoted(CHANGE_SET)} AS c"
            f" WHERE c.{quoted(OP)} IN ('U', 'D') AND {same}"
        )
        if gone != replaced:
            raise Contradiction(f"{replaced} rows were to be replaced or deleted, {gone} were there")
        names = _list(c.name for c in self.columns)
        db.execute(
            f"INSERT INTO {quoted(STORED)} ({names})"
            f" SELECT {names} FROM {quoted(CHANGE_SET)} WHERE {quoted(OP)} IN ('I', 'U')"
        )

    def check_identities(self) -> None:
        names = _list(self.kept.identity)
        twice = self.lake.rows(f"SELECT {names} FROM {quoted(STORED)} GROUP BY ALL HAVING count(*) > 1")
        if twice:
            raise Contradiction(f"two rows have the identity {twice[0]}")

    def full(self) -> list[Row]:
        """The rows that a full refresh would store now."""
        return self.lake.evaluate(self.kept.full)

    def visible(self) -> list[Row]:
        return self.lake.rows(f"SELECT {_list(c.name for c in self.plan.visible)} FROM {quoted(STORED)}")

    def stored(self) -> list[Row]:
        """With hidden columns, but without ids that commits assign."""
        return self.lake.rows(f"SELECT {_list(c.name for c in self.kept.full.columns)} FROM {quoted(STORED)}")


@dataclass(frozen=True)
class _Statement:
    """DML, ready for DuckDB."""

    kind: str
    #: folded
    table: str
    sql: str
    where: str = ""
    sets: str = ""


@lru_cache(maxsize=2_048)
def _statements(dml: str) -> tuple[_Statement, ...]:
    """Remembered: the same changes are made to many lakes."""
    parsed = sqlglot.parse(dml, dialect=Spark4)
    return tuple(_statement(each) for each in parsed if each is not None)


def _statement(tree: exp.Expr) -> _Statement:
    match tree:
        case exp.Insert():
            target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
            return _Statement("insert", target.name.casefold(), _duck(tree))
        case exp.Delete():
            return _Statement("delete", tree.this.name.casefold(), _duck(tree), _where(tree))
        case exp.Update():
            sets = ", ".join(f"({_duck(each.expression)}) AS {_duck(each.this)}" for each in tree.expressions)
            return _Statement("update", tree.this.name.casefold(), _duck(tree), _where(tree), sets)
        case _:
            raise ValueError(f"a step has INSERT, UPDATE and DELETE only, not: {tree.sql('spark')}")


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One database for the whole process; each lake starts it empty."""
    return connect()


@cache
def duck_type(spark_type: str) -> str:
    if spark_type == "void":
        return '"NULL"'  # which DuckDB has, too
    return exp.DataType.build(spark_type, dialect="spark").sql("duckdb")


def table_of(leaf: Leaf) -> str:
    """The table of the lake that stands for a leaf."""
    names = {
        Role.NEW: leaf.name,
        Role.OLD: f"{leaf.name}@old",
        Role.DELTA: f"{leaf.name}@delta",
        Role.STORED: STORED,
        Role.NET: NET,
        Role.STEP: f"{leaf.name}@step",
    }
    return names[leaf.role]


def _place(leaf: Leaf) -> exp.Expr:
    return exp.Table(this=exp.to_identifier(table_of(leaf), quoted=True))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | int() | Decimal():
            return str(value)
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _declared(columns: Sequence[Column]) -> str:
    return ", ".join(f"{quoted(c.name)} {duck_type(c.type)}" for c in columns)


def _duck(tree: exp.Expr) -> str:
    return tree.sql("duckdb")


def _where(statement: exp.Expr) -> str:
    where = statement.args.get("where")
    return _duck(where) if where is not None else ""
