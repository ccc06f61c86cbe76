"""The lake of the tests with Spark as its engine: DuckDB keeps the rows, Spark computes everything.

What comes out has to have the types that the plan promises, down to the last decimal place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.algebra.nodes import Node
from engine.algebra.trees import leaves
from engine.compile.functions import Kind
from engine.compile.render import render
from engine.compile.steps import Steps, in_steps
from engine.lake import meaning, opinion, sql_functions, views
from engine.lake.by_hand import by_hand
from engine.lake.opinion import Opinion
from engine.lake.session import SparkHost
from engine.lake.sql_functions import SqlFunction
from engine.lake.steps import Query, QueryStep, left_of
from engine.records import Column
from tests.support.duck_analyzer import Relations
from tests.support.fake_lake import FakeLake, duck_type, quoted, table_of
from tests.support.view_test import Row

RESULT = "result@spark"


#: for queries over a handful of rows, of which no two are the same: nothing to plan again, nothing to compile
TINY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def tuned_for_tiny(host: SparkHost) -> dict[str, str | None]:
    """Sets what makes tiny queries fast; what was set before, to set it again."""
    conf = host.session().conf
    before = {key: conf.get(key) for key in TINY}
    for key, value in TINY.items():
        conf.set(key, value)
    return before


def computed_by(host: SparkHost) -> Callable[[Relations], tuple[SparkAnalyzer, SparkLake]]:
    """An engine for random cases."""
    return lambda relations: (SparkAnalyzer(host, relations), SparkLake(relations, host))


class SparkAnalyzer:
    """Spark's own answers, over tables that are shown to it as empty views."""

    def __init__(self, host: SparkHost, relations: Mapping[str, tuple[Column, ...]]) -> None:
        self._host = host
        for name, columns in relations.items():
            chosen = ", ".join(f"CAST(NULL AS {c.type}) AS {_ticked(c.name)}" for c in columns)
            host.session().sql(f"SELECT {chosen} WHERE false").createOrReplaceTempView(_ticked(name))

    def describe(self, sql: str) -> tuple[Column, ...]:
        return self._host.analyze(sql).columns

    def same_semantics(self, one: str, other: str) -> bool:
        return self._host.same_semantics(one, other)

    def opinion(self, sql: str) -> Opinion:
        return opinion.of(self._host.session(), sql)

    def show_view(self, name: str, sql: str) -> None:
        views.of_query(self._host.session(), name, sql)

    def kind_of(self, function: str) -> Kind:
        return Kind.AGGREGATE if sql_functions.aggregates(self._host.session(), function) else Kind.SCALAR

    def look_up(self, function: str) -> SqlFunction | None:
        return sql_functions.look_up(self._host.session(), function)

    def meaning(self, functions: tuple[str, ...]) -> str:
        return meaning.of(self._host.session(), functions)


class SparkLake(FakeLake):
    def __init__(self, tables: Mapping[str, tuple[Column, ...]], host: SparkHost) -> None:
        super().__init__(tables)
        self.session = host.session()
        # as if they were, in every second world: the statements are the same, cut otherwise
        self._large = frozenset(tables) if len(tables) % 2 else frozenset[str]()
        #: what each view shows, so that nothing is handed over twice
        self._shown: dict[str, object] = {}

    def sql(self, tree: Node) -> str:
        """Runs the tree on Spark, in the steps that it is run in; the query that is handed back reads the result."""
        for leaf in leaves(tree):
            self._show(table_of(leaf.leaf), str(leaf.leaf))
        with left_of(self.session, _query(in_steps(tree, large=self._large)), "a test", small=True) as (left, _):
            views.make_ready(self.session, left.reads)
            return self._run(left.sql, tree.columns)

    def recompute(self, query: str, columns: Sequence[Column]) -> list[Row]:
        for name in self.tables:
            self._show(name, name)
        return self.rows(self._run(query, columns, names_matter=False))

    def _show(self, table: str, view: str) -> None:
        """A table of the lake as a temporary view of Spark."""
        content = self.rows(f"SELECT count(*), sum(hash(t)) FROM {quoted(table)} AS t")[0]
        if self._shown.get(view) == (table, content):
            return
        self._shown[view] = (table, content)
        arrow = self.db.execute(f"SELECT * FROM {quoted(table)}").to_arrow_table()
        if not arrow.num_rows:
            arrow = arrow.schema.empty_table()  # with a piece of each column, which PySpark wants of structs
        views.of_rows(self.session, view, arrow)
        views.make_ready(self.session, (view,))

    def _run(self, sql: str, columns: Sequence[Column], *, names_matter: bool = True) -> str:
        frame = self.session.sql(sql)
        types = [field.dataType.simpleString() for field in frame.schema.fields]
        assert types == [column.type for column in columns], f"Spark gives {types}, planned are {columns}: {sql}"
        if names_matter:
            assert frame.columns == [column.name for column in columns]
        arrow = frame.toArrow()
        self.db.register("arrow_result", arrow)
        cast = ", ".join(
            f"CAST({quoted(name)} AS {duck_type(c.type)}) AS {quoted(c.name)}"
            for name, c in zip(arrow.column_names, columns, strict=True)
        )
        self.db.execute(f"CREATE OR REPLACE TABLE {quoted(RESULT)} AS SELECT {cast} FROM arrow_result")
        self.db.unregister("arrow_result")
        return f"SELECT * FROM {quoted(RESULT)}"


def _ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _query(steps: Steps) -> Query:
    before = tuple(
        QueryStep(
            str(each.leaf), render(each.tree), each.is_few, reads=_read(each.tree), by_hand=by_hand(each.tree, str)
        )
        for each in steps.before
    )
    names = {str(each.leaf): each.leaf.name for each in steps.before}

    def given_empty(view: str) -> Query:
        return _query(steps.given_empty(names[view]))

    return Query(render(steps.last), steps.whole, before, reads=_read(steps.last), given_empty=given_empty)


def _read(tree: Node) -> frozenset[str]:
    return frozenset(str(scan.leaf) for scan in leaves(tree))
