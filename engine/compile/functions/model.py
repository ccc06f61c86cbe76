"""What can be said of a function: what it makes, and whether it gives the same answer again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    #: one value for each row
    SCALAR = "scalar"
    #: one value for each group
    AGGREGATE = "aggregate"
    #: one value for each row, from the rows around it: needs OVER
    WINDOW = "window"
    #: rows for each row: in SELECT, in LATERAL VIEW, and after LATERAL
    GENERATOR = "generator"
    #: a relation of its own: in FROM
    TABLE = "table"
    #: has a meaning by the GROUP BY only in which, or under which, it stands
    GROUPING = "grouping"
    #: of somebody's own function nothing is known before Spark is asked
    UNKNOWN = "unknown"


class Volatility(StrEnum):
    """From the tamest to the wildest; `worst` relies on the order."""

    #: the answer depends on the arguments alone, and on settings that are the same for all
    IMMUTABLE = "immutable"
    #: the same answer throughout one statement, another one tomorrow
    STABLE = "stable"
    #: nobody said; to be treated as volatile
    UNKNOWN = "unknown"
    #: a different answer each time, or one that depends on how the work was cut into pieces
    VOLATILE = "volatile"
    #: runs arbitrary code
    FORBIDDEN = "forbidden"


_ORDER = tuple(Volatility)


def worst(*found: Volatility) -> Volatility:
    return max(found, key=_ORDER.index, default=Volatility.IMMUTABLE)


@dataclass(frozen=True)
class Function:
    name: str
    kind: Kind
    volatility: Volatility = Volatility.IMMUTABLE
    #: why it is not immutable, as people are told: "<name> <why>"
    why: str = ""
