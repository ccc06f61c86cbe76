"""What libraries and the system say, as typed errors; with their own words, as they were heard."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from engine.errors import (
    CommitConflict,
    NegativeMultiplicity,
    NotFound,
    PermissionDenied,
    RefreshFailed,
    SparkUnavailable,
    StorageFull,
    TrickleError,
)
from engine.lake import failures

#: delta-rs hands some of the system's errors on with colours and a drawing
DRAWN = "Generic LocalFileSystem error\n  \x1b[31m↳\x1b[0m Unable to open file /t/x\n   \x1b[31m↳\x1b[0m "


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(28, "No space left on device"), StorageFull),
        (OSError(122, "Disk quota exceeded"), StorageFull),
        (OSError(DRAWN + "Kein Platz (os error 28)"), StorageFull),
        (DeltaError("Failed to parse parquet: No space left on device (os error 28)"), StorageFull),
        (CommitFailedError("Unable to copy data to file (os error 28)"), StorageFull),
        (PermissionError(13, "Permission denied"), PermissionDenied),
        (OSError(DRAWN + "Read-only file system (os error 30)"), PermissionDenied),
        (DeltaError("Unable to open file (os error 13)"), PermissionDenied),
        (CommitFailedError("Failed to commit transaction: 0"), CommitConflict),
        (TableNotFoundError("no log files"), NotFound),
        (DeltaError("Cannot cast value 'trickle_refused_d' to value of Boolean type"), NegativeMultiplicity),
        (DeltaError("MERGE matched a target row with multiple source rows that"), NegativeMultiplicity),
        (DeltaError("something else"), RefreshFailed),
        (OSError(5, "Input/output error"), RefreshFailed),
        (ValueError("a bug"), RefreshFailed),
    ],
)
def test_each_has_its_type(error: Exception, kind: type[TrickleError]) -> None:
    found = failures.typed(error, "The commit to orders")
    assert type(found) is kind
    assert found.message.startswith("The commit to orders")
    assert found.detail
    assert "\x1b" not in found.detail
    assert "\n" not in found.detail


def test_a_typed_error_stays_what_it_is() -> None:
    error = SparkUnavailable("Spark is not running.")
    assert failures.typed(error, "The commit") is error


def test_the_rights_of_the_written_folder_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def access(path: Path, mode: int) -> bool:
        asked.append(path)
        return False

    monkeypatch.setattr("os.access", access)
    assert type(failures.typed(DeltaError("failed"), "Reading")) is RefreshFailed
    found = failures.typed(DeltaError("failed"), "The commit", str(tmp_path / "not" / "yet"))
    assert type(found) is PermissionDenied
    assert asked == [tmp_path]
