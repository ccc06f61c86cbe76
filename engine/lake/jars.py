"""Delta's jars: fetched once into the user's cache by the Ivy that Spark brings along, offline afterwards."""

from __future__ import annotations

import errno
import fcntl
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import SparkUnavailable, StorageFull, TrickleError
from engine.lake.java import JavaHome, find_java
from engine.lake.trust import java_options

#: a file that names an Ivy settings file, for networks that reach no public repository
IVY_SETTINGS_VARIABLE = "TRICKLE_IVY_SETTINGS"
FETCH_TIMEOUT_S = 900.0
COMPLETE = "complete.json"


def default_cache() -> Path:
    """The user's cache folder, shared by all workspaces."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "trickle"


def spark_home() -> Path:
    """Where pip put Spark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SparkUnavailable("PySpark is not installed.", hint="Install Trickle with its dependencies.")
    return Path(next(iter(spec.submodule_search_locations)))


def artifacts() -> tuple[str, ...]:
    """The jars that Spark needs for Delta, as `name:version`, derived from what pip installed.

    Only what Trickle uses: Delta's own dependencies also bring a catalog client with dozens of jars.
    """
    delta = importlib.metadata.version("delta-spark")
    spark = ".".join(importlib.metadata.version("pyspark").split(".")[:2])
    scala = _scala_version()
    names = (
        f"delta-spark_{spark}_{scala}",
        "delta-storage",
        "delta-kernel-api",
        "delta-kernel-defaults",
        "delta-kernel-unitycatalog",
    )
    return tuple(f"{name}:{delta}" for name in names)


def ensure_jars(
    cache: Path,
    progress: Callable[[str], None],
    java: JavaHome | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> tuple[Path, ...]:
    """The jars, fetched if they are not there yet or were damaged. Safe beside other starters."""
    wanted = artifacts()
    folder = cache / "jars" / wanted[0].replace(":", "-")
    found = _complete(folder, wanted)
    if found:
        return found
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _exclusively(folder.parent / ".lock", progress, stopping):
            found = _complete(folder, wanted)
            if not found:
                progress("fetching Delta's jars, once")
                _fetch(folder, wanted, java or find_java(), stopping)
                found = _complete(folder, wanted)
    except OSError as error:
        raise _refused(folder, error) from error
    if not found:
        raise SparkUnavailable("Delta's jars cannot be read after the fetch.", detail=f"They are in {folder}.")
    return found


def _complete(folder: Path, wanted: tuple[str, ...]) -> tuple[Path, ...]:
    """All jars if each is there in its full size and opens as an archive, else nothing."""
    try:
        sizes: dict[str, int] = json.loads((folder / COMPLETE).read_text())
        jars = tuple(folder / _file_name(artifact) for artifact in wanted)
        for jar in jars:
            if jar.stat().st_size != sizes[jar.name]:
                return ()
            with zipfile.ZipFile(jar):  # reads the directory at the end: a truncated file has none
                pass
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return ()
    return jars


def _fetch(folder: Path, wanted: tuple[str, ...], java: JavaHome, stopping: Callable[[], bool]) -> None:
    """Fetch into a folder beside, then rename: what stands at the final place is whole."""
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder.parent))
    try:
        (work / "ivy.xml").write_text(_module_description(wanted))
        _run_ivy(work, java, stopping)
        fetched = work / "jars"
        missing = [name for name in map(_file_name, wanted) if not zipfile.is_zipfile(fetched / name)]
        if missing:
            raise _unreachable(f"Missing or damaged after the download: {', '.join(missing)}.")
        sizes = {name: (fetched / name).stat().st_size for name in map(_file_name, wanted)}
        (fetched / COMPLETE).write_text(json.dumps(sizes))
        if folder.exists():
            os.rename(folder, work / "damaged")
        os.rename(fetched, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _module_description(wanted: tuple[str, ...]) -> str:
    lines = [
        '<ivy-module version="2.0">',
        '  <info organisation="trickle" module="jars"/>',
        '  <configurations><conf name="default"/></configurations>',
        "  <dependencies>",
    ]
    for artifact in wanted:
        name, version = artifact.split(":")
        lines.append(
            f'    <dependency org="io.delta" name="{name}" rev="{version}" transitive="false" conf="default->master"/>'
        )
    return "\n".join([*lines, "  </dependencies>", "</ivy-module>", ""])


def _run_ivy(work: Path, java: JavaHome, stopping: Callable[[], bool]) -> None:
    """Ivy as a program of its own: it needs no Spark, and its output goes to a file, not to the screen."""
    ivy = sorted((spark_home() / "jars").glob("ivy-*.jar"))
    if not ivy:
        raise SparkUnavailable("This PySpark has no Ivy to fetch Delta's jars with.")
    # relative names: Ivy would read brackets in the name of a home folder as its own placeholders
    # a Java of the machine has been told by its owner whom to trust; the bundled one has not
    trust = java_options(work) if java.bundled else ()
    command = [str(java.path / "bin" / "java"), *trust, "-cp", str(ivy[-1]), "org.apache.ivy.Main", "-warn"]
    command += ["-ivy", "ivy.xml", "-cache", "cache", "-types", "jar"]
    command += ["-retrieve", "jars/[artifact]-[revision].[ext]"]
    settings = os.environ.get(IVY_SETTINGS_VARIABLE)
    if settings:
        command += ["-settings", str(Path(settings).expanduser().resolve())]
    output = work / "ivy.log"
    with output.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  our own command line, no shell
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = _wait(process, stopping)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code != 0:
        said = re.sub(r"\.{3,}", "", output.read_text(errors="replace")).strip().splitlines()
        raise _unreachable("\n".join(line.strip() for line in said if line.strip())[-1500:])


def _wait(process: subprocess.Popen[bytes], stopping: Callable[[], bool]) -> int:
    deadline = time.monotonic() + FETCH_TIMEOUT_S
    while True:
        try:
            return process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            if stopping():
                raise SparkUnavailable("Stopped while fetching Delta's jars.") from None
            if time.monotonic() > deadline:
                raise _unreachable(f"No answer for {FETCH_TIMEOUT_S:.0f} s.") from None


@contextmanager
def _exclusively(path: Path, progress: Callable[[str], None], stopping: Callable[[], bool]) -> Iterator[None]:
    with path.open("a") as lock:
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    progress("waiting for another start to fetch Delta's jars")
                    told = True
                if stopping():
                    raise SparkUnavailable("Stopped while waiting for Delta's jars.") from None
                time.sleep(0.1)
        yield


def _scala_version() -> str:
    for jar in (spark_home() / "jars").glob("spark-core_*.jar"):
        return jar.name.removeprefix("spark-core_").split("-")[0]
    raise SparkUnavailable("This PySpark has no jars.", hint="Install pyspark again.")


def _file_name(artifact: str) -> str:
    return artifact.replace(":", "-") + ".jar"


def _unreachable(detail: str) -> SparkUnavailable:
    return SparkUnavailable(
        "Delta's jars could not be fetched.",
        detail=detail,
        hint="They are fetched once from the public Maven repositories. In a closed network name an Ivy "
        f"settings file in {IVY_SETTINGS_VARIABLE}.",
    )


def _refused(folder: Path, error: OSError) -> TrickleError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("Delta's jars find no room: the disk is full.", detail=str(error), hint="Free some.")
    return SparkUnavailable(
        "The folder for Delta's jars cannot be written.",
        detail=str(error),
        hint=f"Make {folder.parent} writable, or let XDG_CACHE_HOME name another folder.",
    )


def main() -> int:
    """`python -m engine.lake.jars` fetches them ahead of the first start."""
    try:
        jars = ensure_jars(default_cache(), lambda text: print(text, flush=True))
    except TrickleError as error:
        print(error.message, error.detail, error.hint, sep="\n", file=sys.stderr)
        return error.exit_code
    print(f"{len(jars)} jars in {jars[0].parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
