"""A Delta table's transaction log, read as what it is: one JSON file per version, one action per line."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from engine.errors import NotFound

_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.")

#: the key of an action, however its writer spaces it
_ACTION = re.compile(r'\s*\{\s*"(\w+)"')

#: the definitions of so many tables are remembered
_REMEMBERED = 2_000
#: so many commits are searched backwards for a definition before a checkpoint is read
_SEARCHED = 100


@dataclass(frozen=True)
class CommitInfo:
    """What a commit says about itself."""

    version: int
    operation: str
    parameters: dict[str, Any]
    metrics: dict[str, Any]
    user_metadata: str | None
    engine: str
    at: datetime | None
    read_version: int | None


def local_path(path: str) -> Path | None:
    """The folder of a table on this machine; None for one that lives elsewhere."""
    if "://" not in path and not path.startswith("file:"):
        return Path(path)
    parts = urlsplit(path)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def log_folder(path: str) -> Path:
    folder = local_path(path)
    if folder is None:
        raise NotFound(f"{path} is not on this machine.")
    return folder / "_delta_log"


def commit_file(path: str, version: int) -> Path:
    return log_folder(path) / f"{version:020d}.json"


def lines(path: str, version: int) -> Iterator[str] | None:
    """The raw actions of a commit; None when its file is not (or no longer) there."""
    if local_path(path) is not None:
        try:
            return iter(commit_file(path, version).read_text().splitlines())
        except (FileNotFoundError, NotADirectoryError):
            return None
    return _remote_lines(path, version)


def actions(path: str, version: int) -> list[dict[str, Any]] | None:
    """The parsed actions of a commit; None when its file is not (or no longer) there."""
    raw = lines(path, version)
    return None if raw is None else [json.loads(line) for line in raw if line.strip()]


def kind_of(line: str) -> str:
    """Which action a line of a commit is: add, remove, metaData, commitInfo …"""
    found = _ACTION.match(line)
    return found.group(1) if found else ""


def newest_version(path: str) -> int:
    """By listing the folder: the last commit or checkpoint."""
    newest = -1
    try:
        for name in (entry.name for entry in log_folder(path).iterdir()):
            found = _COMMIT.match(name) or _CHECKPOINT.match(name)
            if found:
                newest = max(newest, int(found.group(1)))
    except (FileNotFoundError, NotADirectoryError):
        newest = -1
    if newest < 0:
        raise not_a_table(path)
    return newest


def oldest_version(path: str) -> int:
    """The first version whose commit file is still there."""
    found = (_COMMIT.match(entry.name) for entry in log_folder(path).iterdir())
    return min((int(match.group(1)) for match in found if match), default=0)


def identity(raw: Iterable[str]) -> str:
    """What tells this commit from any other one that may stand behind the same version some day."""
    everything = hashlib.sha256()
    for line in raw:
        if kind_of(line) == "commitInfo":
            ours = hashlib.sha256(line.encode()).hexdigest()[:16]
            stamp = json.loads(line)["commitInfo"].get("inCommitTimestamp")
            return f"{stamp}-{ours}" if stamp is not None else ours
        everything.update(line.encode())
    return everything.hexdigest()[:16]


def witness(raw: Iterable[str]) -> str:
    """A file that this commit added (+) or, where it added none, removed (-); nobody else's has that name."""
    removed = ""
    for line in raw:
        match kind_of(line):
            case "add":
                return f"+{file_name(json.loads(line)['add'])}"
            case "remove" if not removed:
                removed = f"-{file_name(json.loads(line)['remove'])}"
    return removed


def file_name(action: dict[str, Any]) -> str:
    """Without its folders, which writers encode in many ways."""
    return str(action["path"]).rsplit("/", 1)[-1]


def commit_info(path: str, version: int) -> CommitInfo | None:
    """None when the file is gone; an empty one when the writer said nothing about itself."""
    raw = lines(path, version)
    return None if raw is None else info_in(version, raw)


def info_in(version: int, raw: Iterable[str]) -> CommitInfo:
    for line in raw:
        if kind_of(line) == "commitInfo":
            return info_of(version, json.loads(line)["commitInfo"])
    return info_of(version, {})


def info_of(version: int, said: dict[str, Any]) -> CommitInfo:
    stamp = said.get("inCommitTimestamp") or said.get("timestamp")
    return CommitInfo(
        version,
        operation=str(said.get("operation") or "a commit without a name"),
        parameters=said.get("operationParameters") or {},
        metrics=said.get("operationMetrics") or {},
        user_metadata=said.get("userMetadata"),
        engine=str(said.get("engineInfo") or "unknown"),
        at=datetime.fromtimestamp(stamp / 1000, UTC) if isinstance(stamp, int) else None,
        read_version=said.get("readVersion"),
    )


def is_table(folder: Path) -> bool:
    return (folder / "_delta_log").exists()


def not_a_table(path: str) -> NotFound:
    return NotFound(
        f"There is no Delta table at {path}.",
        detail="The folder has no _delta_log with commits in it.",
        hint="Check the path; it names the table's own folder.",
    )


def _remote_lines(path: str, version: int) -> Iterator[str] | None:
    import pyarrow.fs as pa_fs
    from deltalake.fs import DeltaStorageHandler

    files = pa_fs.PyFileSystem(DeltaStorageHandler(path))
    try:
        with files.open_input_stream(f"_delta_log/{version:020d}.json") as file:
            return iter(str(file.read(), "utf-8").splitlines())
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class Definition:
    """What a table is: its metadata and protocol at one version."""

    version: int
    metadata: dict[str, Any]
    protocol: dict[str, Any]

    @property
    def table_id(self) -> str:
        return str(self.metadata["id"])

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.metadata.get("configuration") or {})

    @property
    def schema(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.metadata["schemaString"])
        return parsed

    @property
    def stored_as(self) -> dict[str, object]:
        """By the name of a column, in lower case: what it is called in the files, and its type.

        With column mapping another column may come under the name of one that went, without a file being written.
        """
        return {str(item["name"]).lower(): _stored_as(item) for item in self.schema["fields"]}

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.metadata.get("partitionColumns") or ())

    @property
    def reader_features(self) -> frozenset[str]:
        return self._used("readerFeatures")

    @property
    def features(self) -> frozenset[str]:
        return self.reader_features | self._used("writerFeatures")

    def _used(self, key: str) -> frozenset[str]:
        """delta-rs notes variants as a feature whenever it sets a property, also where no column has any (1.6)."""
        found = frozenset(self.protocol.get(key) or ())
        return found if '"variant"' in self.metadata["schemaString"] else found - {"variantType"}


def _stored_as(item: dict[str, Any]) -> tuple[object, ...]:
    own_name = (item.get("metadata") or {}).get("delta.columnMapping.physicalName", item["name"])
    return (own_name, *_types_within(item["type"]))


def _types_within(kind: Any) -> Iterator[object]:
    match kind:
        case {"type": "struct", "fields": fields}:
            yield from map(_stored_as, fields)
        case {"type": "array", "elementType": element}:
            yield ("array", *_types_within(element))
        case {"type": "map", "keyType": key, "valueType": value}:
            yield ("map", *_types_within(key), *_types_within(value))
        case _:
            yield kind


def definition(path: str, version: int | None = None) -> Definition:
    """Searched backwards through the commits: a table's definition seldom changes, and then late.

    Down to the version that was looked at last, whose definition is known.
    """
    newest = newest_version(path) if version is None and local_path(path) is not None else version
    if newest is None:
        return _opened(path, newest)
    known = _known_below(path, newest)
    metadata: dict[str, Any] | None = None
    protocol: dict[str, Any] | None = None
    for older in range(newest, max(-1, newest - _SEARCHED), -1):
        if known is not None and older == known.version:
            metadata, protocol = metadata or known.metadata, protocol or known.protocol
            break
        raw = lines(path, older)
        if raw is None:
            break
        for line in raw:
            if metadata is None and kind_of(line) == "metaData":
                metadata = json.loads(line)["metaData"]
            elif protocol is None and kind_of(line) == "protocol":
                protocol = json.loads(line)["protocol"]
        if metadata is not None and protocol is not None:
            break
    if metadata is None or protocol is None:
        return _remembered(path, _opened(path, newest))
    return _remembered(path, Definition(newest, metadata, protocol))


#: by path: the newest definition that was looked up, and which commit file stood there
_looked_up: dict[str, tuple[Definition, tuple[int, int, int]]] = {}


def _known_below(path: str, newest: int) -> Definition | None:
    found = _looked_up.get(path)
    if found is None or found[0].version > newest or signature(path, found[0].version) != found[1]:
        return None
    return found[0]


def _remembered(path: str, found: Definition) -> Definition:
    at = signature(path, found.version)
    if at is not None:
        if len(_looked_up) > _REMEMBERED and path not in _looked_up:
            _looked_up.clear()
        _looked_up[path] = (found, at)
    return found


def signature(path: str, version: int) -> tuple[int, int, int] | None:
    """Which file a commit stands in: another table may have come to the same place, with the same version number."""
    if local_path(path) is None:
        return None
    try:
        found = commit_file(path, version).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _opened(path: str, version: int | None) -> Definition:
    """The commits that defined it are gone or long ago: let a library read the checkpoint."""
    from deltalake import DeltaTable

    from engine.lake import failures

    try:
        table = DeltaTable(path, version=version)
        said, protocol = table.metadata(), table.protocol()
        return Definition(
            table.version(),
            {
                "id": str(said.id),
                "configuration": dict(said.configuration),
                "partitionColumns": list(said.partition_columns),
                "schemaString": table.schema().to_json(),
            },
            {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "readerFeatures": protocol.reader_features or [],
                "writerFeatures": protocol.writer_features or [],
            },
        )
    except Exception as error:
        raise failures.typed(error, f"Reading the definition of {path}") from error
