"""The command line: what reaches the engine, what is printed where, and with which exit code."""

from __future__ import annotations

import inspect
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.cli import main as main_module
from engine.cli import session
from engine.cli.main import GROUPS, build_parser, command_names, main
from engine.cli.output import Column, Output, clipped, display_width
from engine.cli.wording import age_text, refresh_line, rows_text
from engine.durations import format_took
from engine.errors import (
    CommitConflict,
    InternalError,
    LeaseHeld,
    NotFound,
    Position,
    QueryParseError,
    SourceWithoutChanges,
    UnsupportedOperator,
)
from engine.records import Outcome, SchedulerPlace
from engine.results import CreateResult, SqlResult, VerifyResult, WriteResult
from engine.workspace import Workspace
from tests.unit.fake_engine import NOON, FakeEngine, refresh_record, status

ROOT = Path(__file__).resolve().parents[2]


class Ran(SimpleNamespace):
    code: int
    out: str
    err: str

    @property
    def json(self) -> object:
        return json.loads(self.out)


Runner = Callable[..., Ran]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type[FakeEngine]:
    fake = FakeEngine.fresh()
    monkeypatch.setattr(session, "engine_class", lambda: fake)
    monkeypatch.setattr("engine.cli.workspace.engine_class", lambda: fake)
    return fake


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    for name in [name for name in os.environ if name.startswith("TRICKLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Workspace.create(tmp_path / "shop")
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def run(engine: type[FakeEngine], workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> Runner:
    def call(*words: str) -> Ran:
        engine.calls.clear()
        code = main(words)
        captured = capsys.readouterr()
        return Ran(code=code, out=captured.out, err=captured.err)

    return call


def calls(engine: type[FakeEngine], verb: str) -> list[object]:
    return [what for name, what in engine.calls if name == verb]


# --- the fake is the engine's shape ------------------------------------------------------------------------


def test_the_fake_takes_what_the_real_engine_takes() -> None:
    from engine.engine import Engine

    for name, function in inspect.getmembers(FakeEngine, inspect.isfunction):
        if name.startswith("_") or name == "fresh":
            continue
        real = getattr(Engine, name)
        ours, theirs = inspect.signature(function).parameters, inspect.signature(real).parameters
        assert list(ours) == list(theirs), name
        for parameter in ours:
            assert ours[parameter].kind == theirs[parameter].kind, (name, parameter)


# --- usage -------------------------------------------------------------------------------------------------


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for name in command_names(build_parser()):
        assert f"    {name} " in text
    for name in command_names(build_parser()):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert "--json" in capsys.readouterr().out


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); sys.path.insert(0, '.')\n"
        "from engine.cli.main import build_parser\n"
        "build_parser().format_help(); took = time.perf_counter() - start\n"
        "heavy = {'pyspark', 'deltalake', 'duckdb', 'sqlglot', 'pyarrow', 'textual', 'sqlite3', 'engine.engine'}\n"
        "print(round(took, 3), sorted(heavy & set(sys.modules)))"
    )
    best = 9.0
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        took, _, heavy = done.stdout.strip().partition(" ")
        assert heavy == "[]"
        best = min(best, float(took))
    assert best < 0.2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("stauts",), "did you mean `trickle status`?"),
        (("zzzz",), "trickle --help"),
        (("-w",), "trickle --help"),
        (("refresh",), "trickle refresh NAME"),
        (("refresh", "a", "--all"), "trickle refresh NAME"),
        (("refresh", "--all", "--full"), "name the ones"),
        (("verify",), "trickle verify NAME"),
        (("history", "--limit", "0"), "--limit 20"),
        (("history", "--limit", "many"), "--limit 20"),
        (("status", "--nonsense"), "--help"),
        (("source",), "trickle source --help"),
        (("source", "add", "x"), "trickle source add --help"),
        (("create", "x"), "-f FILE"),
        (("create", "x", "SELECT 1", "-f", "y"), "-f FILE"),
        (("create", "x", "-f", "/nowhere.sql"), "another file"),
        (("sql",), "-f FILE"),
        (("sql", " -- nothing"), "SHOW STREAM TABLES"),
        (("sql", "SHWO SOURCES"), "did you mean SHOW?"),
        (("explain",), "--query"),
        (("explain", "a", "--query", "b"), "--query"),
        (("status", "--set", "nonsense"), "--set key=value"),
        (("status", "--set", "spark.mastr=x"), "did you mean spark.master?"),
        (("config", "get", "spark.mastr"), "did you mean spark.master?"),
        (("completions", "tcsh"), "--help"),
    ],
)
def test_usage_errors(run: Runner, words: tuple[str, ...], hint: str) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert f"hint: {hint}" in ran.err or hint in ran.err.partition("hint: ")[2]


def test_outside_of_a_workspace(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("status")
    assert ran.code == 2
    assert "trickle init" in ran.err
    monkeypatch.setenv("TRICKLE_WORKSPACE", str(tmp_path / "shop"))
    assert run("status").code == 0


def test_common_options_may_stand_anywhere(
    run: Runner, engine: type[FakeEngine], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    root = str(workspace.root)
    for words in (
        ("-w", root, "--set", "ui.theme=day", "--json", "source", "list"),
        ("source", "-w", root, "--set", "ui.theme=day", "--json", "list"),
        ("source", "list", "-w", root, "--set", "ui.theme=day", "--json"),
    ):
        ran = run(*words)
        assert ran.code == 0
        assert ran.json[0]["source"]["name"] == "orders"
        assert calls(engine, "open") == [(workspace.root, True, {"ui.theme": "day"}, False)]
    run("-w", root, "--set", "a=1", "source", "--set", "b=2", "list", "--set", "c=3=4")
    assert run("--set", "ui.theme=x", "-w", root, "status", "--set", "ui.glyphs=ascii").code == 0
    assert calls(engine, "open")[0][2] == {"ui.theme": "x", "ui.glyphs": "ascii"}


def test_without_a_command_and_without_a_terminal_there_is_help(run: Runner) -> None:
    ran = run()
    assert ran.code == 2
    assert ran.out == ""
    assert "usage: trickle" in ran.err


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("no", hint="h"), 3),
        (QueryParseError("no", hint="h"), 2),
        (UnsupportedOperator("no", hint="h"), 3),
        (CommitConflict("no", hint="h"), 4),
        (InternalError("no", hint="h"), 4),
    ],
)
def test_errors_become_exit_codes(run: Runner, engine: type[FakeEngine], error: Exception, code: int) -> None:
    def fail(*_: object) -> None:
        raise error

    engine.behaviour["overview"] = fail
    ran = run("status")
    assert (ran.code, ran.out) == (code, "")
    assert ran.err == "error: no\nhint: h\n"
    assert calls(engine, "close") == [()]


def test_an_error_shows_its_place(run: Runner, engine: type[FakeEngine]) -> None:
    def fail(*_: object) -> None:
        raise UnsupportedOperator("no rule for LIMIT", position=Position(2, 3), detail="d", hint="h")

    engine.behaviour["create"] = fail
    ran = run("create", "x", "SELECT 1\n\tLIMIT 2")
    assert ran.code == 3
    assert ran.err.splitlines() == [
        "error: no rule for LIMIT (line 2, column 3)",
        "     LIMIT 2",
        "      ^",
        "detail: d",
        "hint: h",
    ]


def test_interrupt_and_closed_pipe(run: Runner, engine: type[FakeEngine]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    engine.behaviour["overview"] = interrupted
    assert run("status").code == 130


def test_a_bug_is_called_a_bug(run: Runner, engine: type[FakeEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    engine.behaviour["overview"] = broken
    ran = run("status")
    assert ran.code == 4
    assert ran.err.startswith("error: ZeroDivisionError: division by zero\n")
    assert "TRICKLE_TRACEBACK=1" in ran.err
    monkeypatch.setenv("TRICKLE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run("status")


def test_a_reader_that_leaves_early_is_no_error(workspace: Workspace) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    code = "import sys; from engine.cli.main import main; sys.exit(main(['config', 'list']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=workspace.root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


# --- commands ----------------------------------------------------------------------------------------------


def test_init(run: Runner, engine: type[FakeEngine], tmp_path: Path) -> None:
    ran = run("init", str(tmp_path / "new"), "--name", "Shop")
    assert ran.code == 0
    assert calls(engine, "init") == [(tmp_path / "new", "Shop")]
    assert f"made the workspace {tmp_path / 'new'}" in ran.out
    assert run("init", str(tmp_path / "new")).code == 3
    assert run("init", str(tmp_path / "two"), "--json").json == {"workspace": str(tmp_path / "two")}


def test_config(run: Runner, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # somebody who has set nothing
    workspace.config_file.write_text("[ui]\ntheme = 'day'\n[spark.conf]\na.b = 1\n")
    lines = run("config", "list").out.splitlines()
    assert lines[0].split() == ["SETTING", "VALUE", "FROM", "MEANING"]
    assert any(line.split()[:3] == ["ui.theme", "day", "workspace"] for line in lines)
    assert any(line.split()[:3] == ["spark.conf", "a.b=1", "workspace"] for line in lines)
    assert run("config", "get", "ui.theme").out == "day\n"
    assert run("config", "get", "ui.theme", "--json").json == {"key": "ui.theme", "value": "day", "origin": "workspace"}
    assert run("config", "get", "ui.theme", "--set", "ui.theme=x").out == "x\n"
    assert run("config", "path").out == f"{workspace.config_file}\n"
    assert run("config", "path", "--json").json == {"path": str(workspace.config_file)}
    one = next(each for each in run("config", "list", "--json").json if each["key"] == "scheduler.tick_ms")
    assert one["value"] == one["default"] == 250
    assert one["env"] == "TRICKLE_SCHEDULER_TICK_MS"
    workspace.config_file.write_text("[ui]\nthem = 'day'\n")
    ran = run("config", "list")
    assert ran.code == 2
    assert "line 2" in ran.err


def test_version(run: Runner) -> None:
    assert "duckdb     1.5.5" in run("version").out
    assert run("version", "--json").json["spark"] == "4.2.0"


def test_source_add(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("source", "add", "orders", "--path", "/d/o", "--key", "id, line", "--cdc", "cdf", "--no-enable-cdf")
    assert ran.out == "added the source orders at version 412, with Change Data Feed\n"
    assert calls(engine, "add_source") == [("orders", "/d/o", "delta", "cdf", ("id", "line"), False)]
    assert run("source", "add", "o", "--path", "x", "--json").json["head"] == 412


def test_source_add_of_other_formats(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("source", "add", "sales", "--path", "/d/s.csv", "--format", "csv", "--option", "sep=;")
    assert ran.out == "added the source sales at version 1, csv, of which a copy is kept\n"
    ran = run("source", "add", "sales", "--path", "/d/s.csv", "--format", "csv", "--option", "sep;", "--json")
    assert ran.code == 2
    assert "is not KEY=VALUE" in ran.err


def test_how_changes_come_and_what_waits(run: Runner) -> None:
    ran = run("cdc")
    assert ran.code == 1, "history of one of them may be gone soon"
    assert [line.split()[:6] for line in ran.out.splitlines()[1:]] == [
        ["orders", "revenue", "cdf", "412", "413", "1"],
        ["orders", "top", "diff", "400", "413", "13"],
    ]
    assert "the log may forget version 401 in 10m; its Change Data Feed is off" in ran.out
    assert run("cdc", "revenue").code == 0
    assert [each["stream_table"] for each in run("cdc", "top", "--json").json] == ["top"]
    assert run("cdc", "nosuch").code == 3
    assert run("cdc", "--buffers", "--json").json[0]["pending_rows"] == 5000
    assert "4,096  top" in run("cdc", "--buffers").out


def test_nobody_is_asked_where_nobody_can_answer(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("source", "add", "mute", "--path", "x", "--cdc", "cdf")
    assert ran.code == SourceWithoutChanges.exit_code == 3
    assert len(calls(engine, "add_source")) == 1
    ran = run("source", "add", "mute", "--path", "x", "--cdc", "cdf", "-y")
    assert ran.code == 0
    assert [call[-1] for call in calls(engine, "add_source")] == [None, True]
    assert run("source", "add", "mute", "--path", "x", "--cdc", "cdf", "--no-enable-cdf", "-y").code == 3


def test_without_a_feed_changes_are_told_by_files_unless_somebody_wants_one(
    run: Runner, engine: type[FakeEngine]
) -> None:
    assert "without Change Data Feed" in run("source", "add", "mute", "--path", "x").out
    assert "without Change Data Feed" in run("source", "add", "mute", "--path", "x", "--cdc", "diff", "-y").out
    assert "without Change Data Feed" in run("source", "add", "mute", "--path", "x", "--no-enable-cdf", "-y").out
    assert calls(engine, "enable_change_feed") == []
    assert "with Change Data Feed" in run("source", "add", "mute", "--path", "x", "-y").out
    assert calls(engine, "enable_change_feed") == ["mute"]


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 3), ("no\n", 3)])
def test_on_a_terminal_one_is_asked(
    run: Runner, engine: type[FakeEngine], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr(Output, "can_ask", lambda self: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    ran = run("source", "add", "mute", "--path", "x", "--cdc", "cdf")
    assert ran.code == code
    assert "[y/N]" in ran.err
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    ran = run("source", "add", "mute", "--path", "x")
    assert ran.code == 0
    assert "Switch its Change Data Feed on? [y/N]" in ran.err
    assert len(calls(engine, "enable_change_feed")) == (code == 0)


def test_source_list_and_drop(run: Runner, engine: type[FakeEngine]) -> None:
    assert run("source", "list").out.splitlines() == [
        "SOURCE  VERSION  CDF    COLUMNS  READ BY  PATH",
        "orders    1,234  on           1  revenue  /d/orders",
        "gone          -  error        -  -        /d/gone  no Delta table there",
    ]
    engine.behaviour["sources"] = lambda: None
    assert run("source", "list", "--json").json[1]["error"] == "no Delta table there"
    assert run("source", "drop", "orders").out == "dropped the source orders; its table is untouched\n"
    assert calls(engine, "drop_source") == ["orders"]


def test_create(run: Runner, engine: type[FakeEngine], tmp_path: Path) -> None:
    ran = run(
        "create",
        "x",
        "SELECT 1",
        "--schedule",
        "5s",
        "--mode",
        "full",
        "--no-initialize",
        "--append-only",
        "--differential-max-change-ratio",
        "0.2",
    )
    assert ran.code == 0
    assert calls(engine, "open")[0][1:] == (False, {}, True)
    assert calls(engine, "wait_for_spark")
    given = {
        "schedule": "5s",
        "refresh_mode": "FULL",
        "initialize": False,
        "append_only": True,
        "differential_max_change_ratio": 0.2,
        "comment": "",
        "enable_cdf": None,
        "dialect": None,
        "partition_by": (),
    }
    assert calls(engine, "create") == [("x", "SELECT 1", given)]
    assert ran.out == "created x, 30s, auto\n"
    assert ran.err == "NOTICE: sources without a key\nhint: declare one\n"
    file = tmp_path / "q.sql"
    file.write_text("SELECT 2\n", encoding="utf-8-sig")
    ran = run("create", "x", "-f", str(file), "--json")
    assert calls(engine, "create")[0][1] == "SELECT 2\n"
    assert ran.json["created"] is True
    assert ran.json["refresh"]["outcome"] == "FULL"
    assert "exists already" in run("create", "x", "SELECT 1", "--if-not-exists").out


def test_create_from_standard_input(run: Runner, engine: type[FakeEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 3"))
    assert run("create", "x", "-").code == 0
    assert calls(engine, "create")[0][1] == "SELECT 3"


def test_drop(run: Runner, engine: type[FakeEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("drop", "revenue", "--cascade").out == "dropped revenue\n"
    assert calls(engine, "drop") == [("revenue", False, True)]
    assert run("drop", "nope").code == 3
    assert run("drop", "nope", "--if-exists").out == "there is no nope\n"
    assert run("drop", "revenue", "--json").json == {"dropped": ["revenue"], "notices": []}
    questions: list[str] = []

    def answer_no(self: Output, question: str, *, yes: bool) -> bool:
        questions.append(question)
        return yes

    monkeypatch.setattr(Output, "confirmed", answer_no)
    assert run("drop", "revenue", "--cascade").out == "nothing was dropped\n"
    assert calls(engine, "drop") == []
    assert questions == ["Drop revenue, top and their data?"]
    assert run("drop", "revenue", "-y").out == "dropped revenue\n"


def test_refresh(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("refresh", "revenue", "--full")
    assert ran.code == 0
    assert ran.out == "revenue #1842 differential in 0.21s, +12 ~1,003 −4\n"
    assert calls(engine, "refresh") == [("revenue", True)]
    ran = run("refresh", "nope", "revenue")
    assert ran.code == 3
    assert ran.out.startswith("revenue #1842")
    assert ran.err.startswith("error: there is no stream table nope\ndetail: looked\nhint: there are: revenue\n")
    assert [each["st"] for each in run("refresh", "revenue", "other", "--json").json] == ["revenue", "other"]
    ran = run("refresh", "--all")
    assert ran.code == 4
    assert ran.out.splitlines()[1] == "other #1842 failed after 0.21s: boom"
    assert "hint: mend it" in ran.err


def test_pause_and_resume(run: Runner, engine: type[FakeEngine]) -> None:
    assert run("pause", "revenue", "top").out == "paused revenue\npaused top\n"
    assert calls(engine, "pause") == ["revenue", "top"]
    assert run("resume", "revenue", "--json").json[0]["name"] == "revenue"
    assert run("pause", "nope").code == 3


def test_verify(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("verify", "revenue")
    assert (ran.code, ran.out) == (0, "equal   revenue: 1,000 rows, 0.09s\n")
    ran = run("verify", "--all")
    assert ran.code == 1
    assert calls(engine, "verify") == ["revenue", "top", "other"]
    assert ran.out.splitlines()[1:3] == ["differs top: 3 missing, 0 unexpected, 0.09s", "          (1, a)"]
    assert [each["equal"] for each in run("verify", "--all", "--json").json] == [True, False, True]
    assert run("verify", "nope", "top").code == 3


def test_status(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("status")
    assert calls(engine, "open")[0][1:] == (True, {}, False)
    lines = ran.out.splitlines()
    assert lines[0] == "shop: 3 stream tables, scheduler here"
    assert lines[2].split() == ["STATE", "NAME", "MODE", "STALE", "SCHEDULE", "LAST", "ROWS", "DUE", "ISSUE"]
    assert lines[3].startswith("fresh   revenue  differential    12s       30s  0.21s  +12 ~1,003 −4  ")
    assert lines[4].split() == ["fresh", "top", "differential", "-", "30s", "-", "-", "-"]
    assert lines[5].endswith("column fx_rate is gone")
    assert len({line.index("differential") for line in lines[3:]}) == 1
    shown = run("status", "--json").json
    assert [each["name"] for each in shown["tables"]] == ["revenue", "top", "other"]
    assert shown["scheduler"]["place"] == "here"
    assert "orders@412" in run("status", "revenue").out
    assert run("status", "revenue", "--json").json["frontier"]["orders"]["version"] == 412
    assert run("status", "nope").code == 3


def test_show_and_explain(run: Runner, engine: type[FakeEngine]) -> None:
    shown = run("show", "revenue").out
    assert "SELECT 1 AS a -- revenue" in shown
    assert "a       int   no" in shown
    assert set(run("show", "revenue", "--json").json) == {"table", "status"}


def test_explain(run: Runner, engine: type[FakeEngine]) -> None:
    explained = run("explain", "revenue").out
    assert "Aggregate a → sum   [algebraic] sums are exact\n└─ Scan orders   [delta]" in explained
    assert "source orders: at version 412 of 413, changes by change data feed; reads a" in explained
    assert "fingerprint   f" in explained
    assert "notice: max(a): re-aggregates the touched groups (hint: use sums)" in explained
    assert run("explain", "revenue", "--format", "tree").out.startswith("Aggregate a → sum")
    shown = run("explain", "revenue", "--json").json
    assert shown == run("explain", "revenue", "--format", "json").json
    assert shown["explanation"]["root"]["children"][0]["label"] == "Scan"
    assert shown["delta_sql"] == "SELECT delta"


def test_explain_the_refresh_mode(run: Runner, engine: type[FakeEngine]) -> None:
    shown = run("explain", "revenue", "--mode").out
    assert calls(engine, "open")[-1][1:] == (True, {}, False)
    assert "next refresh  DIFFERENTIAL\nbecause       orders 412→413\n" in shown
    assert "estimates     off by 12 % (median of the last 20)" in shown
    assert "→ differential  ~0.12s        by its last 7 refreshes of this kind\n" in shown
    assert "0.09s  any refresh of 2 operators\n" in shown
    assert "source orders 412→413, append: 12 changed rows of 1,000\n" in shown
    assert run("explain", "revenue", "--mode", "--json").json["alternatives"][1]["parts"][1]["ms"] == 30.0
    assert run("explain", "top", "--mode").code == 1
    assert run("explain", "--query", "SELECT 1", "--mode").code == 2
    assert run("explain", "revenue", "--mode", "--delta").code == 2


def test_explain_the_rewrite(run: Runner, engine: type[FakeEngine]) -> None:
    shown = run("explain", "revenue", "--rewrite").out
    assert "-- 1. parse\nPARSED\n\n-- 2. push_filters: before\nBEFORE\n-- 2. push_filters: after\nAFTER" in shown
    assert shown.endswith("-- one more step changed nothing\n")
    assert calls(engine, "explain_query_rewrite") == [("SELECT 1 AS a -- revenue", False, "spark")]
    assert "-- 3. prune (no change)\nSAME" in run("explain", "--query", "SELECT 7", "--rewrite", "--all").out
    assert calls(engine, "explain_query_rewrite") == [("SELECT 7", True, None)]
    assert run("explain", "revenue", "--all").code == 2


def test_explain_the_delta(run: Runner, engine: type[FakeEngine]) -> None:
    shown = run("explain", "revenue", "--delta").out.splitlines()
    assert shown[0] == "-- orders: rows came and went"
    assert shown[1] == "-- change: reads the change of orders, what is stored"
    assert shown[2:] == ["SELECT delta;", "", "-- orders: rows came", "-- the result cannot change"]
    assert "Δ orders" in run("explain", "--query", "SELECT 7", "--delta", "--format", "tree").out
    assert run("explain", "revenue", "--delta", "--json").json["cases"][0]["changed"] == {"orders": "mixed"}
    assert run("explain", "revenue", "--delta", "--rewrite").code == 2


def test_validate(run: Runner, engine: type[FakeEngine]) -> None:
    good = run("validate", "SELECT 7", "--dialect", "postgres")
    assert (good.code, good.out.split()[:2]) == (0, ["valid", "yes"])
    assert calls(engine, "validate_query") == [("SELECT 7", "postgres")]
    assert run("validate", "SELECT 7", "--dialect", "oracle").code == 2
    assert run("explain", "revenue", "--dialect", "postgres").code == 2
    bad = run("validate", "SELECT a FROM nope")
    assert bad.code == 3
    assert bad.out.splitlines() == [
        "valid  no",
        "error  NotFound: there is no nope",
        "at     line 1, column 15: nope",
        "hint   did you mean orders?",
    ]
    assert run("explain", "--query", "SELECT a FROM nope").code == 3
    assert run("validate", "SELECT a FROM nope", "--json").json["problem"]["position"] == {"line": 1, "column": 15}
    assert run("validate").code == 2


def test_preview(run: Runner, engine: type[FakeEngine]) -> None:
    shown = run("preview", "SELECT 7", "--limit", "2", "--mode", "full").out
    assert calls(engine, "preview_stream_table") == [("SELECT 7", "FULL", 2, None)]
    assert shown.endswith("a     b\n1     x\nNULL  y\\x1b\n2 rows, the limit\n")
    assert run("preview", "SELECT 7", "--json").json["rows"] == {
        "columns": ["a", "b"],
        "rows": [[1, "x"], [None, "y\x1b"]],
    }
    assert run("preview", "SELECT 7", "--limit", "many").code == 2


def test_history(run: Runner, engine: type[FakeEngine]) -> None:
    lines = run("history", "revenue", "--limit", "7").out.splitlines()
    assert calls(engine, "history") == [("revenue", 7)]
    assert lines[0].split() == ["#", "FINISHED", "NAME", "OUTCOME", "TOOK", "IN", "ROWS", "BY", "WHY"]
    assert "1842" in lines[1]
    assert lines[2].endswith("boom\\x1b[2J\\nmore")
    assert [each["number"] for each in run("history", "--json").json] == [1842, 1842]


# --- sql ---------------------------------------------------------------------------------------------------


def test_sql_prints_each_result_and_stops_at_an_error(run: Runner, engine: type[FakeEngine]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.table(
        {
            "région": ["nord", None, "漢字"],
            "sum": pyarrow.array([Decimal("1.50"), Decimal("-20.00"), None], pyarrow.decimal128(12, 2)),
            "tags": [["a", "b"], [], None],
        }
    )

    def answer(text: str) -> SqlResult:
        if text.startswith("SELECT"):
            return SqlResult("select", rows=rows)
        if text.startswith("REFRESH"):
            return SqlResult("refresh", value=refresh_record("revenue"))
        raise QueryParseError("no such table", position=Position(1, 13), hint="h")

    engine.behaviour["sql"] = answer
    script = "SELECT 1; REFRESH STREAM TABLE revenue;\n  DELETE FROM nowhere; SELECT 2"
    ran = run("sql", script)
    assert ran.code == 2
    assert calls(engine, "sql") == ["SELECT 1", "REFRESH STREAM TABLE revenue", "DELETE FROM nowhere"]
    assert ran.out.splitlines() == [
        "région     sum  tags",
        "nord      1.50  [a, b]",
        "NULL    -20.00  []",
        "漢字      NULL  NULL",
        "3 rows",
        "revenue #1842 differential in 0.21s, +12 ~1,003 −4",
    ]
    assert ran.err.splitlines()[:3] == [
        "error: no such table (line 2, column 15)",
        "      DELETE FROM nowhere; SELECT 2",
        "                  ^",
    ]
    shown = run("sql", "SELECT 1", "--json").json
    assert shown[0]["rows"] == {
        "columns": ["région", "sum", "tags"],
        "rows": [
            ["nord", "1.50", ["a", "b"]],
            [None, "-20.00", []],
            ["漢字", None, None],
        ],
    }


def test_dml_is_followed_by_who_is_named(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("sql", "--refresh", "revenue", "DELETE FROM orders")
    assert (ran.code, calls(engine, "write_and_refresh")) == (0, [("DELETE FROM orders", "revenue")])
    assert "orders is at version 8" in ran.out
    assert "revenue" in ran.out
    refused = run("sql", "--refresh", "revenue", "SHOW SOURCES")
    assert (refused.code, "only DML" in refused.err) == (2, True)


def test_sql_is_read_whole_before_anything_runs(run: Runner, engine: type[FakeEngine]) -> None:
    ran = run("sql", "SHOW SOURCES; SHWO SOURCES")
    assert ran.code == 2
    assert "line 1, column 15" in ran.err
    assert engine.calls == []


@pytest.mark.parametrize(
    ("statement", "needed"),
    [
        ("SHOW STREAM TABLES", False),
        ("ALTER STREAM TABLE a PAUSE", False),
        ("DROP STREAM TABLE a", False),
        ("SELECT 1", True),
        ("CREATE STREAM TABLE a AS SELECT 1", True),
        ("SHOW SOURCES; REFRESH STREAM TABLE a", True),
    ],
)
def test_spark_is_started_only_where_it_is_needed(
    run: Runner, engine: type[FakeEngine], statement: str, needed: bool
) -> None:
    engine.behaviour["sql"] = lambda _: SqlResult("show", value=())
    run("sql", statement)
    assert calls(engine, "open")[0][3] is needed


@pytest.mark.parametrize(
    ("result", "shown", "code"),
    [
        (SqlResult("show", value=()), "none yet", 0),
        (SqlResult("show", value=(status("revenue"),)), "STATE", 0),
        (SqlResult("source", value=True), "dropped", 0),
        (SqlResult("source", value=False), "nothing to drop", 0),
        (SqlResult("dml", value=WriteResult("orders", 7)), "orders is at version 7", 0),
        (SqlResult("alter", value=status("revenue")), "revenue: fresh", 0),
        (SqlResult("verify", value=VerifyResult("a", False, 1, 1, 0, (), {}, 1.0)), "differs a", 1),
        (SqlResult("other"), "done", 0),
        (SqlResult("create", value=CreateResult(FakeEngine.fresh().tables[0], True, None)), "created revenue", 0),
    ],
)
def test_sql_results_in_words(run: Runner, engine: type[FakeEngine], result: SqlResult, shown: str, code: int) -> None:
    engine.behaviour["sql"] = lambda _: result
    ran = run("sql", "SHOW SOURCES")
    assert shown in ran.out
    assert ran.code == code


# --- run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGINT])
def test_run_until_told_to_stop(run: Runner, engine: type[FakeEngine], word: signal.Signals) -> None:
    def stop_soon() -> None:
        deadline = time.monotonic() + 5
        while not calls(engine, "start_scheduler") and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), word)

    helper = threading.Thread(target=stop_soon)
    helper.start()
    before = signal.getsignal(word)
    ran = run("run", "--set", "scheduler.drain_timeout_s=7")
    helper.join()
    assert ran.code == 0
    assert calls(engine, "stop_scheduler") == [7.0]
    assert "revenue began" in ran.out
    assert ran.out.endswith("stopped\n")
    assert signal.getsignal(word) == before
    assert engine.listeners == []  # after the last refresh was told of


def test_run_where_another_process_does(run: Runner, engine: type[FakeEngine]) -> None:
    engine.place = SchedulerPlace.ELSEWHERE
    ran = run("run")
    assert ran.code == LeaseHeld.exit_code == 3
    assert "4711" in ran.err
    assert calls(engine, "close") == [()]


def test_run_ends_when_the_lease_is_lost(run: Runner, engine: type[FakeEngine]) -> None:
    def lose() -> None:
        engine.place = SchedulerPlace.ELSEWHERE

    timer = threading.Timer(0.2, lose)
    timer.start()
    ran = run("run", "--json")
    timer.join()
    assert ran.code == 4
    assert json.loads(ran.out.splitlines()[0])["kind"] == "scheduler_started"


# --- ui, completions, output -------------------------------------------------------------------------------


def test_ui_opens_the_dashboard(run: Runner, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    def dashboard(path: Path, read_only: bool = False, overrides: object = None) -> None:
        opened.append((path, read_only, overrides))

    monkeypatch.setitem(sys.modules, "trickle_tui.start", SimpleNamespace(run=dashboard))
    assert run("ui", "--read-only", "--set", "ui.theme=day").code == 0
    assert opened == [(workspace.root, True, {"ui.theme": "day"})]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert run().code == 0
    assert opened[1] == (workspace.root, False, {})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_command_and_are_valid(run: Runner, shell: str) -> None:
    script = run("completions", shell).out
    for name in command_names(build_parser()):
        assert name in script
    program = shutil.which(shell)
    if program:
        subprocess.run([program, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trickle sta", ["status"]),
        ("trickle refresh --f", ["--full"]),
        ("trickle -w x source ", ["add", "list", "drop"]),
        ("trickle completions z", ["zsh"]),
    ],
)
def test_bash_completes(run: Runner, line: str, expected: list[str]) -> None:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("there is no bash here")
    script = run("completions", "bash").out
    words = line.split(" ")
    code = (
        f"{script}\nCOMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _trickle; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[: len(expected)] == expected


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_only_on_a_terminal_and_never_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for stream, expected in ((Terminal(), "\x1b[31mx\x1b[0m"), (io.StringIO(), "x")):
        assert Output(out=stream).painted("x", "red") == expected
    monkeypatch.setenv("NO_COLOR", "1")
    assert Output(out=Terminal()).painted("x", "red") == "x"


def test_tables_align_wide_characters_and_keep_the_cursor_still() -> None:
    stream = io.StringIO()
    Output(out=stream).table(
        (Column("A"), Column("B", right=True), Column("C")), [("漢字", "1", "x"), ("e\u0301", "22", "\x1b[2J\n")]
    )
    assert stream.getvalue().splitlines() == ["A      B  C", "漢字   1  x", "e\u0301     22  \\x1b[2J\\n"]
    assert display_width("漢字") == 4
    assert clipped("abcdefghijkl", 8) == "abcdefg…"


def test_words_for_times_and_rows() -> None:
    assert [age_text(each) for each in (None, 0.2, 12.3, 61, 3600, 90_061, 172_800)] == [
        "-",
        "0s",
        "12s",
        "1m1s",
        "1h0m",
        "1d1h",
        "2d0h",
    ]
    assert [format_took(each) for each in (0.4, 212, 1500, 61_000)] == ["0.4ms", "0.21s", "1.50s", "1m1s"]
    none = refresh_record("a", Outcome.NO_DATA, rows_inserted=0, rows_updated=0, rows_deleted=0)
    assert rows_text(none) == "-"
    assert refresh_line(none) == "a #1842 no data in 0.21s"
    assert NOON.tzinfo is not None


def test_every_group_registers_commands() -> None:
    assert len(GROUPS) == len({group.__name__ for group in GROUPS})
    assert main_module.GROUPS is GROUPS


def test_verbs_that_look_after_stream_tables(run: Runner, engine: type[FakeEngine], tmp_path: Path) -> None:
    assert "reinitialize" in run("reinitialize", "revenue").out.lower()
    assert run("reinitialize", "nope").code == 3
    assert run("reinitialize", "revenue", "--json").json[0]["outcome"] == "REINITIALIZE"
    ran = run("rename", "revenue", "income")
    assert calls(engine, "rename") == [("revenue", "income")]
    assert ran.out == "revenue is named income from now on; its rows stay at /w/revenue\n"
    assert run("rename", "revenue", "income", "--json").json["name"] == "income"
    assert run("maintain", "revenue").out == (
        "revenue: 40 files became 2, checkpoint at version 51, what no version of the last 169 hours consists of is "
        "removed\n"
    )
    assert run("maintain", "revenue", "--json").json[0]["files_after"] == 2
    assert run("export", "revenue").out == "CREATE STREAM TABLE revenue AS SELECT 1\n;\n"
    assert run("export", "revenue", "--json").json == [
        {"name": "revenue", "sql": "CREATE STREAM TABLE revenue AS SELECT 1"}
    ]
    assert run("export", "nope").code == 3


def test_refresh_only_what_is_stale(run: Runner, engine: type[FakeEngine]) -> None:
    assert "revenue" in run("refresh", "revenue", "--if-stale", "5m").out
    assert run("refresh", "revenue", "--if-stale", "1h").out == "revenue is younger than 1h; nothing was refreshed\n"
    assert run("refresh", "revenue", "--if-stale", "1h", "--json").json == []
    assert run("refresh", "--all", "--if-stale", "1h").code == 2
    assert calls(engine, "refresh") == []


def test_bulk_create(run: Runner, engine: type[FakeEngine], tmp_path: Path) -> None:
    file = tmp_path / "all.sql"
    file.write_text(
        "CREATE STREAM TABLE a PARTITION BY (day) AS SELECT 1;\n-- and\n"
        "CREATE STREAM TABLE b WITH (schedule = '5m') AS SELECT 2;"
    )
    assert run("bulk-create", str(file)).out == "created a, b\n"
    assert calls(engine, "bulk_create") == [
        (
            {"name": "a", "query": "SELECT 1", "partition_by": ("day",)},
            {"name": "b", "query": "SELECT 2", "schedule": "5m"},
        )
    ]
    assert [each["table"]["name"] for each in run("bulk-create", str(file), "--json").json] == ["a", "b"]
    file.write_text("DROP STREAM TABLE a")
    assert run("bulk-create", str(file)).code == 2
    assert run("bulk-create", str(tmp_path / "none.sql")).code == 2


def test_partitions(run: Runner, engine: type[FakeEngine]) -> None:
    run("create", "x", "SELECT 1", "--partition-by", "day, region")
    assert calls(engine, "create")[0][2]["partition_by"] == ("day", "region")  # type: ignore[index]
