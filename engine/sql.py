"""SQL statements, each handed to the verb of the engine that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from engine.compile import explain_statements as e
from engine.compile import source_ddl as d
from engine.compile import statements as s
from engine.compile import upkeep_statements as u
from engine.compile.dml_statements import Dml
from engine.compile.tokens import within
from engine.errors import InvalidArgument, Position, TrickleError
from engine.records import Notice
from engine.results import AlterResult, CreateResult, SqlResult, Validation, WriteResult

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
    if isinstance(statement, u.UpkeepStatement):
        return _upkeep(engine, statement)
    match statement:
        case s.CreateStreamTable():
            return _create(engine, statement)
        case s.AlterStreamTable(name=name, options=options, query=query, query_position=place):
            altered = _placed(place, lambda: engine.alter_stream_table(name, query=query, **options))
            return SqlResult("alter", value=altered, notices=altered.notices)
        case s.DropStreamTable(name=name, if_exists=if_exists, cascade=cascade):
            dropped = engine.drop_stream_table(name, if_exists=if_exists, cascade=cascade)
            return SqlResult("drop", value=dropped, notices=dropped.notices)
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
        case s.ShowCdcStatus():
            return SqlResult("show", value=engine.cdc_status())
        case s.ShowChangeBuffers():
            return SqlResult("show", value=engine.change_buffer_stats())
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
        case d.AlterSource():
            altered_at = _placed(statement.position, lambda: engine.alter_source_table(statement))
            return SqlResult("ddl", value=altered_at)
        case d.DropSourceTable(target=target):
            return SqlResult("ddl", value=engine.drop_source_table(target))
        case s.Select(text=text, position=place):
            return SqlResult("select", rows=_placed(place, lambda: engine.select(text)))
        case Dml(text=text, position=place):
            return _dml(place, lambda: engine.change_source(text))


def write_and_refresh(engine: Engine, text: str, name: str) -> SqlResult:
    """DML, and a stream table that follows it."""
    match s.parse_statement(text):
        case Dml(text=dml, position=place):
            return _dml(place, lambda: engine.write_and_refresh(dml, name))
    raise InvalidArgument("only DML is followed by a refresh", hint="say REFRESH STREAM TABLE for itself")


def _dml(place: Position, run: Callable[[], WriteResult]) -> SqlResult:
    written = _placed(place, run)
    return SqlResult("dml", value=written, notices=written.notices)


def _upkeep(engine: Engine, statement: u.UpkeepStatement) -> SqlResult:
    match statement:
        case u.RefreshStreamTable(name=name, older_than=str() as age):
            record = engine.refresh_if_stale(name, age)
            young = (Notice(f"{name} is younger than {age}; nothing was refreshed"),) if record is None else ()
            return SqlResult("refresh", value=record, notices=young)
        case u.RefreshStreamTable(name=name, full=full):
            return SqlResult("refresh", value=engine.refresh_stream_table(name, full=full))
        case u.RefreshAll():
            return SqlResult("refresh", value=engine.refresh_all())
        case u.ReinitializeStreamTable(name=name):
            return SqlResult("refresh", value=engine.reinitialize_stream_table(name))
        case u.RepairStreamTable(name=name):
            return SqlResult("repair", value=engine.repair_stream_table(name))
        case u.MaintainStreamTable(name=name):
            return SqlResult("maintain", value=engine.maintain_stream_table(name))
        case u.RenameStreamTable(name=name, new_name=new_name):
            return SqlResult("alter", value=engine.rename_stream_table(name, new_name))
        case u.ShowCreate(name=name):
            return SqlResult("show", value=engine.export_definition(name))


def _explain(engine: Engine, statement: e.ExplainStatement) -> SqlResult:
    match statement:
        case e.ExplainStreamTable(name=name):
            return SqlResult("explain", value=engine.explain_st(name))
        case e.ExplainRefreshMode(name=name):
            return SqlResult("explain", value=engine.explain_refresh_mode(name))
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
    verb: Callable[..., CreateResult | AlterResult] = engine.create_stream_table
    if statement.if_not_exists:
        verb = engine.create_stream_table_if_not_exists
    elif statement.or_replace:
        verb = engine.create_or_replace_stream_table
    created = _placed(statement.query_position, lambda: verb(statement.name, statement.query, **statement.options))
    return SqlResult("create" if isinstance(created, CreateResult) else "alter", value=created, notices=created.notices)


def _placed(start: Position, run: Callable[[], T]) -> T:
    """Errors inside a query point into the whole statement."""
    try:
        return run()
    except TrickleError as error:
        error.position = within(error.position, start)
        raise
