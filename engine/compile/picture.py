"""What the compiler did, step by step. Drawing trees takes longer than compiling, so it waits until somebody looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.algebra.display import show
from engine.algebra.nodes import Node
from engine.results import Stage


@dataclass(frozen=True)
class Picture:
    """One step: the tree that it left, or a text where there is no tree yet."""

    name: str
    left: Node | str
    #: the tree that the step was given; None for one that makes a tree of something else
    given: Node | None
    took_ms: float

    @property
    def changed(self) -> bool:
        if isinstance(self.left, str) or self.left is self.given:
            return False
        # trees that are equal may still share other parts of themselves
        return self.left != self.given or (self.given is not None and show(self.left) != show(self.given))

    def draw(self) -> Stage:
        text = self.left if isinstance(self.left, str) else show(self.left)
        before = show(self.given) if self.given is not None and self.changed else None
        return Stage(self.name, text, self.changed, self.took_ms, before)


def draw(pictures: Iterable[Picture]) -> tuple[Stage, ...]:
    return tuple(picture.draw() for picture in pictures)
