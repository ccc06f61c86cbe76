"""Makes pytest collect `.test` files: one item for each file and way of running it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.view_runner import Variant, run_view_test
from tests.support.view_test import ViewTest, ViewTestError, read_view_test


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return ViewFile.from_parent(parent, path=file_path) if file_path.suffix == ".test" else None


class ViewFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        test = read_view_test(self.path)
        variants = [Variant.OPTIMIZED] if test.refusal else list(Variant)
        for variant in variants:
            yield ViewItem.from_parent(self, name=variant.value, test=test, variant=variant)


class ViewItem(pytest.Item):
    def __init__(self, *, test: ViewTest, variant: Variant, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]
        self.test = test
        self.variant = variant

    def runtest(self) -> None:
        run_view_test(self.test, self.variant)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, AssertionError | ViewTestError):
            return f"{self.test.about}\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name} ({self.variant})"
