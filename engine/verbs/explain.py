"""The verbs of the engine that look into the compiler. They create nothing and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import InvalidArgument
from engine.results import (
    DeltaExplanation,
    Preview,
    RefreshModeExplanation,
    Rewrite,
    StreamTableExplanation,
    Validation,
)
from engine.verbs.looking import LookingVerbs

if TYPE_CHECKING:
    from engine.explain import Explainer


class ExplainVerbs(LookingVerbs):
    @property
    def _explainer(self) -> Explainer:
        """Not before Spark is ready."""
        return self._ready().explainer

    def validate_query(self, query: str, *, dialect: str | None = None) -> Validation:
        """Could it be a stream table, and how would it be maintained? What is wrong with it is an answer too."""
        return self._explainer.validate(query, dialect)

    def preview_stream_table(
        self, query: str, *, refresh_mode: str = "AUTO", limit: int = 10, dialect: str | None = None
    ) -> Preview:
        """What a creation would make, with the first rows as they are now. Creates nothing."""
        return self._explainer.preview(query, refresh_mode, limit, dialect)

    def explain_query_rewrite(self, query: str, *, every_step: bool = False, dialect: str | None = None) -> Rewrite:
        """The way from the text to the maintenance plan, step by step."""
        return self._explainer.rewrite(query, every_step=every_step, dialect=dialect)

    def explain_delta(
        self, name: str | None = None, *, query: str | None = None, dialect: str | None = None
    ) -> DeltaExplanation:
        """The maintenance statements of a stream table, or of a query that is none, for each kind of change."""
        if (name is None) == (query is None):
            raise InvalidArgument("explain_delta needs a name or a query", hint="give one of them")
        if name is not None:
            return self._explainer.delta_of(self.stream_table(name))
        return self._explainer.delta(query or "", dialect)

    def explain_refresh_mode(self, name: str) -> RefreshModeExplanation:
        """What the next refresh would do for the changes that are pending, and what each way would cost.

        From the logs alone: Spark is not started.
        """
        return self._core.foresight.of(self.stream_table(name))

    def explain_st(self, name: str) -> StreamTableExplanation:
        """All about one stream table: definition, plan, reasons, last refresh, frontier, sources."""
        table = self.stream_table(name)
        return self._explainer.stream_table(table, self.status(name))
