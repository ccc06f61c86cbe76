"""Where the memory was not enough: the same once more, with little of everything at a time.

A task of Spark's that finds no memory left takes its whole JVM along: Spark ends it, since nobody knows what else in it
is broken. So it is started again first. What does not fit then either is nothing to be tried a third time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from engine.errors import OutOfMemory
from engine.lake.compute import Compute

T = TypeVar("T")

_log = logging.getLogger(__name__)


def frugally_if_needed(compute: Compute, name: str, attempt: Callable[[], T]) -> T:
    try:
        return attempt()
    except Exception as error:
        if not compute.ran_out_of_memory(error):
            raise
        _log.warning("%s is tried again with little at a time: %s", name, error)
    try:
        with compute.frugally():
            return attempt()
    except Exception as error:
        if not compute.ran_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"There is not enough memory to refresh {name}.",
            detail="It was tried again with small parts and without broadcasts.",
            hint="Raise spark.driver_memory in trickle.toml, or refresh it in full when little else runs.",
        ) from error
