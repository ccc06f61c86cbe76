"""What the next refresh of a stream table would do, and why: told from the logs alone, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.alternatives import Alternative, Way
from engine.catalog.store import Catalog
from engine.errors import TrickleError
from engine.records import Notice, Outcome, Reason, ReasonCode, StreamTable
from engine.refresh import cost_book, schema_changes
from engine.refresh.choose import (
    Choice,
    after_changes,
    before_changes,
    changes_by_itself,
    views_replaced,
    weighed,
    why_full_as_stored,
)
from engine.refresh.costs import Costs, median_error
from engine.refresh.moves import since_the_frontier, untold, without_change
from engine.refresh.observe import Observer, SourceMove, refuse_tampered
from engine.refresh.plans import Plans
from engine.refresh.redefined import laid_out_otherwise
from engine.refresh.sizes import Sizes
from engine.refresh.work import Pending, pending
from engine.results import CostError, PendingChange, Problem, RefreshModeExplanation

if TYPE_CHECKING:
    from engine.config import Settings

#: looking at versions takes about so long
_NO_DATA_MS = 5.0


class Foresight:
    def __init__(self, catalog: Catalog, observer: Observer, plans: Plans, sizes: Sizes, settings: Settings) -> None:
        self._catalog = catalog
        self._observer = observer
        self._plans = plans
        self._relations = plans.relations
        self._sizes = sizes
        self._settings = settings

    def of(self, table: StreamTable) -> RefreshModeExplanation:
        costs = cost_book.read(self._catalog, table)
        try:
            choice, changes = self._decided(table, costs)
        except TrickleError as error:
            failed = Choice(Outcome.FAILED, Reason(ReasonCode.FAILED, str(error)))
            return self._explained(table, costs, failed, (), Problem.of(error))
        return self._explained(table, costs, choice, changes, None)

    def _decided(self, table: StreamTable, costs: Costs) -> tuple[Choice, tuple[Pending, ...]]:
        """As a refresh decides. What only Spark knows is taken to be as it was: a function's body, say."""
        progress = self._catalog.get_progress(table.id)
        target = self._observer.target(table, progress)
        refuse_tampered(table, target)
        paths = {name: self._relations.path(name) for name in table.sources}
        chosen = self._observer.heads(paths)
        choice, moves = before_changes(table, target, progress, asked_full=False), untold(paths, chosen)
        choice = choice or laid_out_otherwise(table, target)
        if choice is None:
            if self._blocks_ddl:
                schema_changes.refuse_replaced(table, self._relations, chosen, target.frontier or {})
            found = since_the_frontier(self._observer, self._relations, table, target, paths, chosen)
            choice, moves = found.choice or self._by_other_columns(table, costs, found.moves), found.moves
            choice = choice or views_replaced(table, self._plans.views_of(table))
        changes = pending(costs, moves, self._sizes)
        full_reason = why_full_as_stored(table)
        if choice is None and without_change(moves) and not changes_by_itself(table):
            choice = Choice(Outcome.NO_DATA, Reason(ReasonCode.NO_DATA, "nothing changed upstream"))
        if choice is None:
            ratio = self._settings.refresh.max_change_ratio
            choice = after_changes(table, changes, costs, full_reason=full_reason, max_change_ratio=ratio)
        return weighed(choice, costs, changes, full_reason=full_reason), changes

    @property
    def _blocks_ddl(self) -> bool:
        return self._settings.sources.block_source_ddl

    def _by_other_columns(self, table: StreamTable, costs: Costs, moves: tuple[SourceMove, ...]) -> Choice | None:
        change = schema_changes.exchanged(costs.shape.used_columns, self._relations, moves)
        if change is None:
            return None
        if self._blocks_ddl:
            raise change.refused(table)
        return Choice(Outcome.REINITIALIZE, Reason(ReasonCode.SOURCE_SCHEMA_CHANGED, change.text))

    def _explained(
        self, table: StreamTable, costs: Costs, choice: Choice, changes: tuple[Pending, ...], problem: Problem | None
    ) -> RefreshModeExplanation:
        nothing = choice.outcome is Outcome.NO_DATA
        no_data = Alternative(
            Way.NO_DATA,
            _NO_DATA_MS if nothing else None,
            (),
            "no source has changed" if nothing else "there is something to do",
            chosen=nothing,
        )
        return RefreshModeExplanation(
            name=table.name,
            requested_mode=table.refresh_mode,
            outcome=choice.outcome,
            reason=choice.reason,
            alternatives=(no_data, *choice.alternatives),
            changes=tuple(_shown(each) for each in changes),
            max_change_ratio=table.differential_max_change_ratio,
            error=error_of(costs),
            problem=problem,
            notices=tuple(self._notices(table)),
        )

    def _notices(self, table: StreamTable) -> list[Notice]:
        sources = {source.name.casefold(): source for source in self._catalog.sources()}
        read = [sources[name.casefold()] for name in table.sources if name.casefold() in sources]
        return [
            Notice(f"{source.name} is polled: what it is by now shows at the next look")
            for source in read
            if source.polled is not None
        ]


def error_of(costs: Costs) -> CostError:
    return CostError(median_error(costs), len(costs.errors))


def _shown(change: Pending) -> PendingChange:
    move = change.move
    return PendingChange(
        source=move.name,
        frontier=None if move.was is None else move.was.version,
        head=move.chosen.version,
        kind="overwritten" if move.overwritten else move.change.value if move.was is not None else "read whole",
        rows_read=change.read,
        rows_changed=change.changed,
        is_guess=change.is_guess,
        source_rows=change.source_rows,
    )
