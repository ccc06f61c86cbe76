"""What follows from what changes by itself: refused, recomputed each time it is due, or fine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.compile.functions.classify import Finding
from engine.compile.functions.model import Volatility, worst
from engine.compile.positions import fragment, position
from engine.errors import Position, VolatileFunction
from engine.lake.opinion import Opinion
from engine.records import Notice, Reason, ReasonCode

_FULL_HINT = "write the value into the source, or create the stream table with refresh_mode = 'FULL'"
_DECLARE_HINT = (
    "if it gives the same answer for the same arguments, name it in compile.immutable_functions or create it with "
    "DETERMINISTIC; or create the stream table with refresh_mode = 'FULL'"
)


class VolatileFunctionPolicy(StrEnum):
    """What becomes of a query that reads the clock."""

    WARN = "warn"
    REJECT = "reject"


@dataclass(frozen=True)
class FunctionRules:
    """What the settings say of functions."""

    policy: VolatileFunctionPolicy = VolatileFunctionPolicy.WARN
    #: names in lower case, with their schema or without
    immutable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ruling:
    """What a stream table of this query is. IMMUTABLE: nothing stands in the way of maintaining it differentially.

    STABLE: recomputed each time it is due, never NO_DATA, the moment that its clock showed in the stamp; comparing it
    with recomputing needs that moment. VOLATILE: recomputed too, and cannot be compared.
    """

    volatility: Volatility
    #: why it is recomputed
    reason: Reason | None = None
    notices: tuple[Notice, ...] = ()

    def in_view(self, name: str, place: Position | None) -> Ruling:
        """Of a view's text, as it is told about a query that names the view there."""
        if self.reason is None:
            return self
        reason = Reason(self.reason.code, f"{self.reason.text} (in the view {name})", place)
        return replace(self, reason=reason)


def rule(
    findings: Sequence[Finding],
    text: str,
    *,
    full: bool,
    policy: VolatileFunctionPolicy = VolatileFunctionPolicy.WARN,
    opinion: Opinion | None = None,
    overruled: bool = False,
) -> Ruling:
    """`full`: refresh_mode FULL was asked for. Raises VolatileFunction for what is not allowed.

    `overruled`: the settings say otherwise of a function that Spark sees into, so that its opinion counts only where
    the text alone leaves a doubt.
    """
    counted = [each for each in findings if not each.suspected or _confirmed(each, opinion)]
    volatility = worst(*(each.volatility for each in counted), _by_spark(None if overruled else opinion))
    first = next((each for each in counted if each.volatility is volatility), None)
    if volatility is Volatility.IMMUTABLE:
        return Ruling(volatility)
    said = f"{first.name} {first.why}" if first else "this query calls something that does not give one answer"
    place = position(first.node, text) if first else None
    part = fragment(first.node, text) if first else None
    if volatility is Volatility.FORBIDDEN:
        raise VolatileFunction(
            f"{said} and is never allowed in a stream table",
            position=place,
            fragment=part,
            hint="compute its value in the source",
        )
    if not full and (volatility is not Volatility.STABLE or policy is VolatileFunctionPolicy.REJECT):
        hint = _DECLARE_HINT if volatility is Volatility.UNKNOWN else _FULL_HINT
        raise VolatileFunction(said, position=place, fragment=part, hint=hint)
    if volatility is Volatility.STABLE:
        notice = Notice(
            f"{said}: it is recomputed each time it is due",
            "compile.volatile_function_policy = 'reject' refuses such queries",
        )
        return Ruling(volatility, Reason(ReasonCode.STABLE, said, place, part), (notice,))
    return _volatile(Reason(ReasonCode.VOLATILE, said, place, part))


def volatile_in_full(error: VolatileFunction) -> Ruling:
    """Of what was refused, had FULL not been asked for."""
    return _volatile(Reason(ReasonCode.VOLATILE, error.message, error.position, error.fragment))


def _volatile(reason: Reason) -> Ruling:
    notice = Notice(f"{reason.text}: each refresh recomputes everything, and verify cannot compare")
    return Ruling(Volatility.VOLATILE, reason, (notice,))


def _confirmed(finding: Finding, opinion: Opinion | None) -> bool:
    """Without Spark's word, a suspicion holds: it costs a recomputation, while missing it costs right answers."""
    return opinion is None or opinion.stable


def _by_spark(opinion: Opinion | None) -> Volatility:
    if opinion is None:
        return Volatility.IMMUTABLE
    if not opinion.deterministic:
        return Volatility.VOLATILE
    return Volatility.STABLE if opinion.stable else Volatility.IMMUTABLE
