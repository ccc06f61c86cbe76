"""SQL statements, each handed to the verb of the engine that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from engine.compile import explain_statements as e
from engine.compile import statements as s
from engine.compile.tokens import within
from engine.errors import Position, TrickleError
from engine.results import SqlResult, Validation

if TYPE_CHECKING:
    from engine.engine import Engine

T = TypeVar("T")


def run_statement(engine: Engine, text: str) -> SqlResult:
    return _run(engine, s.parse_statement(text))


def run_script(engine: Engine, text: str) -> tuple[SqlResult, ...]:
    return tuple(_run(engine, s.parse_statement(part, place)) for part, place in s.split_script(text))


def _run(engine: Engine, statement: s.Statement) -> SqlResult:
    if isinstance(statement, e.ExplainStatement):
        return _explain(engine, statement)
    match statement:
        case s.CreateStreamTable():
            return _create(engine, statement)
        case s.DropStreamTable(name=name, if_exists=if_exists, cascade=cascade):
            dropped = engine.drop_stream_table(name, if_exists=if_exists, cascade=cascade)
            return SqlResult("drop", value=dropped, notices=dropped.notices)
        case s.RefreshStreamTable(name=name, full=full):
            return SqlResult("refresh", value=engine.refresh_stream_table(name, full=full))
        case s.PauseStreamTable(name=name):
            return SqlResult("alter", value=engine.pause_stream_table(name))
        case s.ResumeStreamTable(name=name):
            return SqlResult("alter", value=engine.resume_stream_table(name))
        case s.VerifyStreamTable(name=name):
            return SqlResult("verify", value=engine.verify(name))
        case s.ShowStreamTables():
            return SqlResult("show", value=engine.overview(events=1).tables)
        case s.ShowSources():
            return SqlResult("show", value=engine.sources())
        case s.CreateSource(name=name, path=path, options=options):
            return SqlResult("source", value=engine.add_source(name, path, **options))
        case s.DropSource(name=name, if_exists=if_exists):
            return SqlResult("source", value=engine.drop_source(name, if_exists=if_exists))
        case s.CreateView(name=name, query=query, query_position=place, or_replace=or_replace):
            made = _placed(place, lambda: engine.create_view(name, query, or_replace=or_replace))
            return SqlResult("view", value=made)
        case s.DropView(name=name, if_exists=if_exists):
            return SqlResult("view", value=engine.drop_view(name, if_exists=if_exists))
        case s.ShowViews():
            return SqlResult("show", value=engine.views())
        case s.Select(text=text, position=place):
            return SqlResult("select", rows=_placed(place, lambda: engine.select(text)))
        case s.Dml(text=text, position=place):
            return SqlResult("dml", value=_placed(place, lambda: engine.change_source(text)))


def _explain(engine: Engine, statement: e.ExplainStatement) -> SqlResult:
    match statement:
        case e.ExplainStreamTable(name=name):
            return SqlResult("explain", value=engine.explain_st(name))
        case e.ValidateQuery(query=query, query_position=place, options=options):
            return SqlResult("validate", value=_validated(place, engine.validate_query(query, **options)))
        case e.PreviewStreamTable(query=query, query_position=place, options=preview):
            return SqlResult("preview", value=_placed(place, lambda: engine.preview_stream_table(query, **preview)))
        case e.ExplainRewrite(name=str() as name, every_step=every_step):
            stored = engine.stream_table(name).query
            return SqlResult(
                "explain", value=engine.explain_query_rewrite(stored, every_step=every_step, dialect="spark")
            )
        case e.ExplainRewrite(query=query, query_position=place, options=options, every_step=every_step):
            found = _placed(place, lambda: engine.explain_query_rewrite(query, every_step=every_step, **options))
            return SqlResult("explain", value=found)
        case e.ExplainDelta(name=str() as name):
            return SqlResult("explain", value=engine.explain_delta(name))
        case e.ExplainDelta(query=query, query_position=place, options=options):
            return SqlResult("explain", value=_placed(place, lambda: engine.explain_delta(query=query, **options)))


def _validated(start: Position, found: Validation) -> Validation:
    """Its places point into the whole statement, as those of errors do."""
    problem, explanation = found.problem, found.explanation
    if problem is not None:
        problem = replace(problem, position=within(problem.position, start))
    if explanation is not None and explanation.reason is not None:
        reason = replace(explanation.reason, position=within(explanation.reason.position, start))
        explanation = replace(explanation, reason=reason)
    return replace(found, problem=problem, explanation=explanation)


def _create(engine: Engine, statement: s.CreateStreamTable) -> SqlResult:
    verb = engine.create_stream_table_if_not_exists if statement.if_not_exists else engine.create_stream_table
    created = _placed(statement.query_position, lambda: verb(statement.name, statement.query, **statement.options))
    return SqlResult("create", value=created, notices=created.notices)


def _placed(start: Position, run: Callable[[], T]) -> T:
    """Errors inside a query point into the whole statement."""
    try:
        return run()
    except TrickleError as error:
        error.position = within(error.position, start)
        raise
