"""The bridge to a real engine: the only file of the dashboard that knows `engine.engine`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.engine import Engine
from engine.errors import InternalError
from engine.explain_text import text_of
from engine.records import StreamTableStatus
from engine.results import SqlResult
from trickle_tui.snapshot import (
    Answer,
    Cancel,
    Done,
    Drop,
    Explain,
    Explained,
    Focus,
    Maintain,
    Pause,
    Refresh,
    Reinitialize,
    Rename,
    Request,
    Resume,
    Rows,
    RunSql,
    Snapshot,
    Told,
    UiSettings,
    Verified,
    Verify,
)
from trickle_tui.views import answers

if TYPE_CHECKING:
    import pyarrow

#: refreshes whose numbers the plots and the history tab show
_HISTORY = 200
#: rows of a statement that are shown
_ROWS = 500
#: closing stops Spark and the scheduler; leaving the dashboard does not wait longer for that
_CLOSE_S = 0.5


class EngineBridge:
    """Every call goes straight to the engine, in the thread that makes it."""

    def __init__(self, workspace: Path, read_only: bool, overrides: Mapping[str, str], env: Mapping[str, str]) -> None:
        self._engine = Engine.open(workspace, read_only=read_only, overrides=overrides)
        self._read_only = read_only
        self._env = env
        self._focus: Focus | None = None
        self._focus_seen: object = None
        self._unsubscribe: Callable[[], None] = lambda: None

    @property
    def read_only(self) -> bool:
        return self._read_only

    @property
    def settings(self) -> UiSettings:
        ui = self._engine.settings.ui
        return UiSettings(theme=ui.theme, ascii=ui.glyphs == "ascii", no_color=bool(self._env.get("NO_COLOR")))

    def now(self) -> datetime:
        return datetime.now(UTC)

    def start(self) -> None:
        self._engine.start_spark()
        if not self._read_only:
            self._engine.start_scheduler()

    def snapshot(self, focus: str | None) -> Snapshot:
        overview = self._engine.overview()
        table = next((table for table in overview.tables if table.name == focus), None)
        return Snapshot(overview, self._focus_on(table) if table is not None else None)

    def _focus_on(self, table: StreamTableStatus) -> Focus:
        """Definition and history, read again only after another refresh."""
        seen = (table.name, table.last.refresh_id if table.last else None, table.state)
        if self._focus is None or seen != self._focus_seen:
            history = tuple(reversed(self._engine.history(table.name, limit=_HISTORY)))
            self._focus = Focus(table.name, self._engine.stream_table(table.name), history)
            self._focus_seen = seen
        return self._focus

    def perform(self, request: Request) -> Answer:
        engine = self._engine
        match request:
            case Refresh(name, full):
                return Done(answers.refreshed(engine.refresh_stream_table(name, full=full)))
            case Pause(name):
                engine.pause_stream_table(name)
                return Done(f"{name} is paused")
            case Resume(name):
                engine.resume_stream_table(name)
                return Done(f"{name} goes on")
            case Cancel(name):
                found = engine.cancel_refresh(name)
                return Done(f"{name}: refresh cancelled" if found else f"{name}: no refresh was running")
            case Verify(name):
                return Verified(engine.verify(name))
            case Drop(name, cascade):
                dropped = engine.drop_stream_table(name, cascade=cascade)
                return Done(f"dropped {', '.join(dropped.dropped)}", tuple(notice.text for notice in dropped.notices))
            case Reinitialize(name):
                return Done(answers.refreshed(engine.reinitialize_stream_table(name)))
            case Maintain(name):
                return Done(answers.maintained(engine.maintain_stream_table(name)))
            case Rename(name, new_name):
                return Done(f"{name} is named {engine.rename_stream_table(name, new_name).name} from now on")
            case Explain(name):
                return Explained(engine.explain_st(name))
            case RunSql(text):
                return _result(text, engine.sql(text))

    def subscribe(self, wake: Callable[[], None]) -> None:
        self._unsubscribe = self._engine.subscribe(lambda event: wake())

    def close(self) -> None:
        """Let go at once; what takes longer goes on without the dashboard until the process ends."""
        self._unsubscribe()
        closing = threading.Thread(target=self._engine.close, name="dashboard close", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)


def _result(statement: str, result: SqlResult) -> Answer:
    notices = tuple(notice.text for notice in result.notices)
    if result.rows is not None:
        return _rows(statement, result.rows, notices)
    if result.kind in ("explain", "validate", "preview"):
        return Told(text_of(result.value))
    return Done(answers.of_statement(result), notices)


def _rows(statement: str, table: pyarrow.Table, notices: tuple[str, ...]) -> Rows:
    """The first rows as text, numbers with their commas."""
    import pyarrow.types as kinds

    shown = table.slice(0, _ROWS)
    numeric = tuple(
        kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_decimal(field.type)
        for field in table.schema
    )
    by_column: list[Iterable[Any]] = [column.to_pylist() for column in shown.columns]
    cells = tuple(
        tuple(answers.cell(value, number) for value, number in zip(row, numeric, strict=True))
        for row in zip(*by_column, strict=True)
    )
    if len(cells) != shown.num_rows:
        raise InternalError("the rows of the statement could not be read")
    return Rows(
        statement=statement,
        names=tuple(table.schema.names),
        types=tuple(str(field.type) for field in table.schema),
        cells=cells,
        numeric=numeric,
        total=table.num_rows,
        notices=notices,
    )
