"""A workspace: the folder that holds `trickle.toml` and `.trickle/`. Paths only; nothing is read here."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.config import CONFIG_NAME, render_default_toml
from engine.errors import AlreadyExists, WorkspaceMissing
from engine.files import storage, write_atomically

STATE_NAME = ".trickle"
_PRIVATE = 0o700


@dataclass(frozen=True)
class Workspace:
    root: Path

    @property
    def config_file(self) -> Path:
        return self.root / CONFIG_NAME

    @property
    def state(self) -> Path:
        return self.root / STATE_NAME

    @property
    def catalog_file(self) -> Path:
        return self.state / "catalog.db"

    @property
    def warehouse(self) -> Path:
        return self.state / "warehouse"

    @property
    def history(self) -> Path:
        return self.state / "history"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def turns(self) -> Path:
        return self.state / "turns"

    @property
    def snapshots(self) -> Path:
        return self.state / "snapshots"

    @staticmethod
    def find(start: Path) -> Workspace:
        """The workspace that `start` is in: the nearest folder, going up, that has a `.trickle/`."""
        start = Path(os.path.abspath(start))
        for folder in (start, *start.parents):
            if (folder / STATE_NAME).is_dir():
                return Workspace(folder)
        half = start / CONFIG_NAME
        raise WorkspaceMissing(
            f"{start} is not in a Trickle workspace",
            detail=f"{half} exists, but {STATE_NAME}/ does not" if half.is_file() else None,
            hint="make one with `trickle init`, or name one with --workspace",
        )

    @staticmethod
    def create(path: Path, fill: Callable[[Workspace], None] | None = None) -> Workspace:
        """Makes the workspace `path`, which only its owner can enter.

        `fill` puts its files into `.trickle/`; the folder gets that name only when everything is in it, so an
        attempt that fails leaves nothing that looks like a workspace.
        """
        root = Path(os.path.abspath(path))
        made = Workspace(root)
        if made.state.exists():
            raise AlreadyExists(
                f"{root} is already a Trickle workspace",
                hint="choose another folder, or use this one as it is",
            )
        fresh_root = not root.exists()
        draft: Path | None = None
        claimed = False
        try:
            with storage(root):
                root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
                draft = Path(tempfile.mkdtemp(prefix=f"{STATE_NAME}-new-", dir=root))
                scaffold = Workspace(draft)
                for folder in (scaffold.state, scaffold.warehouse, scaffold.history):
                    folder.mkdir(mode=_PRIVATE)
                for folder in (scaffold.logs, scaffold.snapshots):
                    folder.mkdir(mode=_PRIVATE)
                if fill is not None:
                    fill(scaffold)
                _rename_new(scaffold.state, made.state)
                claimed = True
                # Last, for only one of several who try at once gets here.
                if not made.config_file.exists():
                    write_atomically(made.config_file, render_default_toml().encode())
        except BaseException:
            if claimed:
                shutil.rmtree(made.state, ignore_errors=True)
            raise
        finally:
            if draft is not None:
                shutil.rmtree(draft, ignore_errors=True)
            if fresh_root and not made.state.exists():
                with suppress(OSError):
                    root.rmdir()
        return made


def _rename_new(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        if target.exists():
            raise AlreadyExists(
                f"{target.parent} has just become a Trickle workspace", hint="somebody else made it: use it"
            ) from error
        raise
