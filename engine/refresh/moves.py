"""What the sources of a stream table did since its frontier, and whether that alone decides what is to be done."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.bind import Change
from engine.errors import SourceHistoryLost, SourceReplaced, SourceRewound, TrickleError
from engine.records import Frontier, Outcome, Reason, ReasonCode, RefreshMode, StreamTable
from engine.refresh.choose import Choice
from engine.refresh.observe import Observer, SourceMove, Target, read_by, without_changes
from engine.refresh.plans import Relations


@dataclass(frozen=True)
class Moves:
    moves: tuple[SourceMove, ...]
    #: what is decided by that
    choice: Choice | None = None
    #: why all has to be computed anew
    lost: TrickleError | None = None


def untold(paths: dict[str, str], chosen: Frontier) -> tuple[SourceMove, ...]:
    """Of sources that are read as they are, whatever happened."""
    return tuple(SourceMove(name, paths[name], version, None, Change.MIXED, None) for name, version in chosen.items())


def since_the_frontier(
    observer: Observer,
    relations: Relations,
    table: StreamTable,
    target: Target,
    paths: dict[str, str],
    chosen: Frontier,
) -> Moves:
    """By the logs alone. A source whose past is lost can still be read anew."""
    try:
        moves = observer.changes(paths, chosen, target.frontier or {})
    except SourceHistoryLost as error:
        reason = Reason(ReasonCode.HISTORY_LOST, error.message)
        return Moves(untold(paths, chosen), Choice(Outcome.REINITIALIZE, reason), error)
    except (SourceReplaced, SourceRewound) as error:
        reason = Reason(ReasonCode.SOURCE_REPLACED, error.message)
        return Moves(untold(paths, chosen), Choice(Outcome.REINITIALIZE, reason), error)
    if table.refresh_mode is RefreshMode.FULL or table.full_reason is not None:
        return Moves(moves)
    moves = tuple(read_by(move, relations.cdc_mode(move.name)) for move in moves)
    mute = next((move for move in moves if move.is_mute), None)
    if mute is None:
        return Moves(moves)
    if table.refresh_mode.is_strict:
        raise without_changes(mute.name)
    reason = Reason(ReasonCode.NO_CHANGE_FEED, f"{mute.name} does not record its changes")
    return Moves(moves, Choice(Outcome.FULL, reason))


def without_change(moves: tuple[SourceMove, ...]) -> bool:
    return all(move.change is Change.NONE for move in moves)
