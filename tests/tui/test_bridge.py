"""The fake is what the real bridge is, call by call; and the real one loads nothing heavy before it must."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from engine.errors import Position
from engine.results import Problem, SqlResult, Validation
from tests.tui.fake import FakeBridge
from trickle_tui.bridge import Bridge
from trickle_tui.engine_bridge import EngineBridge, _result
from trickle_tui.snapshot import Told

MEMBERS = [name for name in vars(Bridge) if not name.startswith("_")]


def signature(owner: type, name: str) -> tuple[list[str], object]:
    member = inspect.getattr_static(owner, name)
    function = member.fget if isinstance(member, property) else member
    found = inspect.signature(function)
    return list(found.parameters), found.return_annotation


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("bridge", [FakeBridge, EngineBridge])
def test_bridges_have_the_protocols_signatures(bridge: type, name: str) -> None:
    assert signature(bridge, name) == signature(Bridge, name)
    assert isinstance(inspect.getattr_static(bridge, name), property) == isinstance(
        inspect.getattr_static(Bridge, name), property
    )


def test_importing_the_dashboard_loads_nothing_heavy() -> None:
    code = (
        "import sys; import trickle_tui.app, trickle_tui.engine_bridge; "
        "print([name for name in ('pyspark','deltalake','duckdb','sqlglot','pyarrow','plotext','PIL') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_explanation_is_told_in_the_one_printers_words() -> None:
    problem = Problem("NotFound", "there is no nope", None, "look", Position(1, 15), "nope")
    result = SqlResult("validate", value=Validation("SELECT a FROM nope", problem, None))
    assert _result("VALIDATE …", result) == Told(
        "valid  no\nerror  NotFound: there is no nope\nat     line 1, column 15: nope\nhint   look"
    )
