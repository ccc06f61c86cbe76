"""What is asked of the engine where that is more than some arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Alteration:
    """What is asked of a stream table; None stands for what stays as it is."""

    query: str | None = None
    dialect: str | None = None
    schedule: str | None = None
    refresh_mode: str | None = None
    append_only: bool | None = None
    comment: str | None = None
    enable_cdf: bool | None = None
    #: "default": by the settings again
    differential_max_change_ratio: float | Literal["default"] | None = None
    partition_by: tuple[str, ...] | None = None
