"""The house rules that a machine can check: which way imports point, how long files are, what never gets in.

Each rule is a function from a tree of files to violations, and each is shown a tree that breaks it: a rule
that has never been seen failing proves nothing.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Upper layers import lower ones, never the other way round; the parts of one layer may import each other.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"cli"}),
    frozenset({"demo"}),
    frozenset({"engine", "core", "explain", "verbs", "sql"}),
    frozenset({"schedule"}),
    frozenset({"refresh"}),
    frozenset({"observe"}),
    frozenset({"compile"}),
    frozenset({"lake"}),
    frozenset({"catalog"}),
    frozenset({"algebra"}),
    # what every layer may speak
    frozenset({"config", "workspace", "events", "failpoints", "records", "results", "explain_text", "errors", "names"})
    | frozenset({"alternatives", "asked", "clock", "codec", "durations", "event_records", "files"}),
)

#: A library that only some parts may know, so that it can be replaced, faked or loaded late in one place.
FENCES: dict[str, tuple[str, ...]] = {
    "textual": ("trickle_tui",),
    "pyspark": ("engine/lake",),
    "delta": ("engine/lake",),
    "deltalake": ("engine/lake",),
    "py4j": ("engine/lake",),
    "sqlite3": ("engine/catalog",),
    "duckdb": ("engine/observe", "engine/sinks", "engine/snapshots.py"),
    "sqlglot": (
        "engine/compile",
        "engine/algebra/scalars.py",
        "engine/algebra/aggregates.py",
        "engine/algebra/comparable.py",
        "engine/algebra/copies.py",
        "engine/algebra/dialect.py",
        "engine/algebra/plain.py",
    ),
    # the command line opens the dashboard, and nothing else of the engine knows that there is one
    "trickle_tui": ("trickle_tui", "engine/cli"),
}

#: What the dashboard may know of the engine outside its bridge: values, never behaviour.
TUI_MAY_KNOW = ("engine.records", "engine.event_records", "engine.results", "engine.errors")
TUI_BRIDGE = ("trickle_tui/bridge.py", "trickle_tui/engine_bridge.py")

LINES_MAX = 450

#: Loaded late: a dashboard that waits for these before its first paint is a slow one.
HEAVY = ("pyspark", "deltalake", "duckdb", "sqlglot", "pyarrow", "plotext")


def product_files(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for top in ("engine", "trickle_tui"):
        for path in sorted((root / top).rglob("*.py")):
            yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module, file: str) -> Iterator[tuple[str, int]]:
    """Every module that a file imports anywhere, functions and TYPE_CHECKING included, with its line."""
    package = file.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                # `from engine import records` imports a module, `from engine.records import Event` a name
                yield f"{module}.{alias.name}", node.lineno


def layer_of(module: str) -> int | None:
    """How far up `engine.x…` stands, 0 at the top; None for the package itself."""
    unit = module.split(".")[1] if "." in module else ""
    return next((depth for depth, units in enumerate(LAYERS) if unit in units), None)


def layer_violations(root: Path) -> Iterator[str]:
    for file, tree in product_files(root):
        module = file.removesuffix(".py").replace("/", ".")
        if not file.startswith("engine/") or file == "engine/__init__.py":
            continue
        here = layer_of(module)
        if here is None:
            yield f"{file}: no layer of LAYERS holds this part of the engine"
            continue
        for target, line in imported(tree, file):
            there = layer_of(target) if target.startswith("engine.") else None
            if there is not None and there < here:
                yield f"{file}:{line}: imports {target}, which stands above it"


def fence_violations(root: Path) -> Iterator[str]:
    for file, tree in product_files(root):
        for target, line in imported(tree, file):
            allowed = FENCES.get(target.split(".")[0])
            if allowed is not None and not file.startswith(allowed):
                yield f"{file}:{line}: imports {target}, allowed only in {', '.join(allowed)}"
            known = target.startswith(TUI_MAY_KNOW) or not target.startswith("engine.")
            if file.startswith("trickle_tui/") and file not in TUI_BRIDGE and not known:
                yield f"{file}:{line}: imports {target}; only {TUI_BRIDGE[0]} talks to the engine"


def eager_dashboard_violations(root: Path) -> Iterator[str]:
    """The command line may open the dashboard, but not load it for `trickle --help`."""
    for file, tree in product_files(root):
        if file.startswith("engine/"):
            for target, line in imported(without_functions(tree), file):
                if target.startswith("trickle_tui"):
                    yield f"{file}:{line}: imports {target} outside a function"


def without_functions(tree: ast.Module) -> ast.Module:
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return ast.Module([node for node in tree.body if not isinstance(node, functions)], [])


def shape_violations(root: Path) -> Iterator[str]:
    unfinished = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    for file, tree in product_files(root):
        lines = (root / file).read_text(encoding="utf-8").splitlines()
        if len(lines) > LINES_MAX:
            yield f"{file}: {len(lines)} lines, more than {LINES_MAX}"
        if lines and ast.get_docstring(tree) is None:
            yield f"{file}: no docstring that says what the module is for"
        for number, line in enumerate(lines, 1):
            if unfinished.search(line):
                yield f"{file}:{number}: marked as unfinished"
        for node in ast.walk(tree):
            yield from (f"{file}:{node_line}: {what}" for node_line, what in swallowed(node))


def swallowed(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Places that hide an error or stand in for code that is not there."""
    if isinstance(node, ast.ExceptHandler):
        if node.type is None:
            yield node.lineno, "a bare except"
        broad = isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
        if broad and all(isinstance(statement, ast.Pass) for statement in node.body):
            yield node.lineno, "an error of any kind is swallowed"
    if isinstance(node, ast.Name) and node.id == "NotImplemented" + "Error":
        yield node.lineno, "not implemented"


def address_violations(root: Path, files: list[str]) -> Iterator[str]:
    """Addresses of a package registry, paths of one machine: with either, a clone works in one place only."""
    registry = re.compile(
        r"(py" + r"pi\.|pytho" + r"nhosted|repo1?\.mav" + r"en|(extra-)?inde" + r"x-url)", re.IGNORECASE
    )
    machine = re.compile(r"(?<![\w.$}])/(ro" + r"ot|wo" + r"rk)/\w")
    for file in files:
        try:
            text = (root / file).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a picture, or a file that is being removed
        for number, line in enumerate(text.splitlines(), 1):
            if registry.search(line) or machine.search(line):
                yield f"{file}:{number}: {line.strip()[:80]}"


def tracked_files() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listing.stdout.splitlines()


@pytest.mark.parametrize("rule", [layer_violations, fence_violations, eager_dashboard_violations, shape_violations])
def test_the_house_keeps_its_rules(rule):
    assert list(rule(ROOT)) == []


def test_no_address_stands_in_the_repository():
    assert list(address_violations(ROOT, tracked_files())) == []


def test_constraints_are_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not re.fullmatch(r"#.*|[a-z0-9.-]+==[A-Za-z0-9.]+", line)]
    assert odd == []


@pytest.mark.parametrize(
    ("rule", "file", "text", "expected"),
    [
        (layer_violations, "engine/lake/x.py", "from engine.refresh import run\n", "stands above it"),
        (layer_violations, "engine/lake/x.py", "def f():\n    import engine.engine\n", "stands above it"),
        (layer_violations, "engine/algebra/x.py", "from ..catalog import store\n", "stands above it"),
        (layer_violations, "engine/records.py", "from engine import catalog\n", "stands above it"),
        (layer_violations, "engine/attic/x.py", "", "no layer"),
        (fence_violations, "engine/refresh/x.py", "def f():\n    import pyspark.sql\n", "pyspark"),
        (fence_violations, "engine/refresh/x.py", "from deltalake import DeltaTable\n", "deltalake"),
        (fence_violations, "engine/observe/x.py", "import sqlite3\n", "sqlite3"),
        (fence_violations, "engine/lake/x.py", "import duckdb\n", "duckdb"),
        (fence_violations, "engine/engine.py", "import textual\n", "textual"),
        (fence_violations, "engine/engine.py", "from trickle_tui import app\n", "trickle_tui"),
        (fence_violations, "trickle_tui/app.py", "from engine.engine import Engine\n", "only trickle_tui/br"),
        (fence_violations, "trickle_tui/app.py", "from engine import engine\n", "only trickle_tui/bridge.py"),
        (eager_dashboard_violations, "engine/cli/ui.py", "import trickle_tui.app\n", "outside a function"),
        (shape_violations, "engine/x.py", '"""."""\n' + "x = 1\n" * LINES_MAX, "451 lines"),
        (shape_violations, "engine/x.py", "x = 1\n", "no docstring"),
        (shape_violations, "engine/x.py", '"""."""\n# TO' + "DO\n", "engine/x.py:2: marked as unfinished"),
        (shape_violations, "engine/x.py", '"""."""\ntry:\n    f()\nexcept:\n    g()\n', "a bare except"),
        (
            shape_violations,
            "engine/x.py",
            '"""."""\ntry:\n    f()\nexcept Exception:\n    pass\n',
            "swallowed",
        ),
        (shape_violations, "engine/x.py", '"""."""\nraise NotImplemented' + "Error\n", "not implemented"),
    ],
)
def test_a_rule_sees_what_breaks_it(tmp_path, rule, file, text, expected):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    violations = list(rule(tmp_path))
    assert len(violations) == 1
    assert expected in violations[0]


def test_rules_accept_what_keeps_them(tmp_path):
    for file, text in {
        "engine/lake/x.py": '"""."""\nimport pyspark\nfrom engine.records import Event\n',
        "engine/cli/ui.py": '"""."""\ndef run():\n    from trickle_tui.app import run\n',
        "engine/compile/x.py": '"""."""\nfrom engine.lake import tables\nimport sqlglot\n',
        "trickle_tui/bridge.py": '"""."""\nfrom engine.engine import Engine\n',
        "trickle_tui/app.py": '"""."""\nimport textual\nfrom engine.records import Event\n',
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    for rule in (layer_violations, fence_violations, eager_dashboard_violations, shape_violations):
        assert list(rule(tmp_path)) == []


@pytest.mark.parametrize(
    "line", ["see https://py" + "pi.org/simple", "--inde" + "x-url=x", "open('/wo" + "rk/main/x')"]
)
def test_an_address_is_seen(tmp_path, line):
    (tmp_path / "notes.md").write_text(f"fine\n{line}\n")
    assert len(list(address_violations(tmp_path, ["notes.md"]))) == 1


@pytest.mark.parametrize(
    "module", ["engine", "engine.engine", "engine.cli.main", "trickle_tui.start", "trickle_tui.app"]
)
def test_heavy_libraries_are_loaded_late(module):
    probe = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    command = [sys.executable, "-c", probe]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
