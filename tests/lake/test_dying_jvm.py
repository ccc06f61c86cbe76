"""A dying process drops what it holds bit by bit: nobody may meet it half dead and call it alive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from engine.errors import SparkUnavailable
from engine.lake import failures
from engine.lake.launch import Jvm


@pytest.fixture
def dying() -> Any:
    """It has closed its connections; its stdin goes a little later, and the system calls it dead later still."""
    source = "import os, time; print(flush=True); time.sleep(0.3); os.close(0); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield Jvm(process, cast(Any, None), Path(), local=True)
        process.kill()


def test_who_lost_a_connection_finds_it_dead(dying: Jvm) -> None:
    assert dying.alive()
    dying.lost_connection()
    assert not dying.alive()


def test_a_lost_connection_is_known_through_typed_errors() -> None:
    met = ConnectionResetError(104, "Connection reset by peer")
    typed = failures.typed(met, "The work")
    typed.__cause__ = met
    assert isinstance(typed, SparkUnavailable)
    assert failures.is_lost_connection(typed)
    assert not failures.is_lost_connection(failures.typed(ValueError("other"), "The work"))
