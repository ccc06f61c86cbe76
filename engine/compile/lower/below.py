"""The projection below an operator that works on plain columns, as it is asked for them."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.nodes import Node, Output, Project
from engine.algebra.scalars import Scalar, col
from engine.compile.lower.context import Context


class Below:
    def __init__(self, context: Context, input: Node, passed: Sequence[str] = ()) -> None:
        self._context = context
        self.input = input
        #: columns that are there in any case
        self.passed = tuple(passed)
        self._outputs: dict[Scalar, Output] = {}
        self.passing(passed)

    def passing(self, names: Sequence[str]) -> None:
        for name in names:
            self.column(col(name), name)

    def column(self, value: Scalar, hint: str) -> str:
        """The column that holds this value."""
        if value not in self._outputs:
            name = value.as_column or self._context.names.fresh("", hint)
            self._outputs[value] = Output(name, value, self.input.types.get(value.as_column or "", ""))
        return self._outputs[value].name

    def type_of(self, name: str) -> str:
        """Of a column that was asked for."""
        output = next(each for each in self._outputs.values() if each.name == name)
        return output.type or self._context.typed(Project(self.input, (output,))).columns[0].type

    def node(self) -> Node:
        if not self._outputs:
            return self.input  # count(*) over everything reads no column
        return self._context.typed(Project(self.input, tuple(self._outputs.values())))
