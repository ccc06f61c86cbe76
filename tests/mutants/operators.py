"""Ways of being wrong: each takes a place in the source of a rule and gives it as a careless author would have it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

#: what a place is replaced by, and in which words
Change = tuple[str, ast.expr]
Operator = Callable[[ast.AST], Iterator[Change]]

#: calls that stand for their first argument when they are forgotten
FORGOTTEN = {
    "at_frontier": "new instead of old",
    "consolidate": "not consolidated",
    "distinct": "duplicates stay",
    "negation": "not negated",
    "coalesce": "NULL is not replaced",
    "padded": "not padded",
}
#: calls that are taken for each other
MISTAKEN = {
    "null_safe_eq": "eq",
    "eq": "ne",
    "ne": "eq",
    "lt": "gt",
    "gt": "lt",
    "is_null": "not_null",
    "not_null": "is_null",
    "any_of": "all_of",
    "all_of": "any_of",
    "add": "subtract",
}
#: relations made of their parts
SUMS = ("UnionAll",)
#: under this name a changed file knows all functions that make scalars
SCALARS = "scalars_for_mutants"


@dataclass(frozen=True)
class Mutant:
    """One change to one file."""

    path: str
    line: int
    #: which of the changes of this file
    number: int
    what: str
    #: first and last line of the statement it is in; None where that runs when the file is imported
    statement: tuple[int, int] | None

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.what}"


def name_of(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""


def forgotten(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and name_of(node) in FORGOTTEN and node.args:
        yield FORGOTTEN[name_of(node)], node.args[0]


def mistaken(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MISTAKEN:
        other = MISTAKEN[node.func.id]
        call = ast.Call(ast.Attribute(ast.Name(SCALARS, ast.Load()), other, ast.Load()), node.args, node.keywords)
        yield f"{node.func.id} is {other}", call


def sign(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Call(func=ast.Name(id="weighted"), args=[_, weight]):
            changed = deepcopy(node)
            changed.args[1] = ast.UnaryOp(ast.USub(), weight)
            yield "wrong sign", changed
        case ast.Call(func=ast.Name(id="lit"), args=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))]):
            changed = deepcopy(node)
            changed.args[0] = changed.args[0].operand  # type: ignore[attr-defined]
            yield "wrong sign", changed
        case ast.Call(func=ast.Name(id="lit"), args=[ast.Constant(value=(0 | 1) as value)]) if value is not True:
            changed = deepcopy(node)
            changed.args[0] = ast.Constant(1 - value)
            yield f"{1 - value} instead of {value}", changed


def dropped_term(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call) and name_of(node) in SUMS and node.args and isinstance(node.args[0], ast.Tuple):
        terms = node.args[0].elts
        for index in range(len(terms)):
            changed = deepcopy(node)
            assert isinstance(changed.args[0], ast.Tuple)
            del changed.args[0].elts[index]
            yield f"term {index + 1} of {len(terms)} is dropped", changed


def flag(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Call):
        for index, keyword in enumerate(node.keywords):
            # whether zip is strict, or a record frozen, is no matter of rows
            is_ours = keyword.arg not in (None, "strict", "frozen")
            if is_ours and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, bool):
                changed = deepcopy(node)
                changed.keywords[index].value = ast.Constant(not keyword.value.value)
                yield f"{keyword.arg} is {not keyword.value.value}", changed


def sides(node: ast.AST) -> Iterator[Change]:
    """`members[:i]` and `members[i + 1:]`: what comes before and after."""
    match node:
        case ast.Slice(upper=ast.expr() as upper, lower=None):
            yield "one more before", ast.Slice(None, ast.BinOp(upper, ast.Add(), ast.Constant(1)))  # type: ignore[misc]
        case ast.Slice(lower=ast.BinOp(left=left), upper=None):
            yield "one more after", ast.Slice(left, None)  # type: ignore[misc]


def guard(node: ast.AST) -> Iterator[Change]:
    """Conditions of the rule itself."""
    match node:
        case ast.BoolOp(op=op, values=values):
            what = "part {} of a condition" if isinstance(op, ast.And) else "alternative {}"
            for index in range(len(values)):
                rest = [each for place, each in enumerate(values) if place != index]
                left = rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
                yield f"{what.format(index + 1)} is dropped", left
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "a not is dropped", operand
        case ast.Compare(ops=[ast.LtE()], left=left, comparators=right):
            yield "<= is not asked", ast.Constant(True)
        case ast.Compare(ops=[ast.Gt()], left=left, comparators=right):
            yield "> is >=", ast.Compare(left, [ast.GtE()], right)
        case ast.Call(func=ast.Name(id="all"), args=args):
            yield "all is any", ast.Call(ast.Name("any", ast.Load()), args, [])
        case ast.Call(func=ast.Name(id="any"), args=args):
            yield "any is all", ast.Call(ast.Name("all", ast.Load()), args, [])


OPERATORS: tuple[Operator, ...] = (forgotten, mistaken, sign, dropped_term, flag, sides, guard)


def mutants(path: str, source: str) -> list[Mutant]:
    tree = ast.parse(source)
    statements = _statements(tree)
    return [
        Mutant(path, getattr(node, "lineno", 0) or _line(node), number, what, statements.get(id(node)))
        for number, (node, what, _) in enumerate(_changes(tree))
    ]


def mutated(source: str, number: int) -> ast.Module:
    """The file with that change."""
    tree = ast.parse(source)
    node, _, changed = next(change for place, change in enumerate(_changes(tree)) if place == number)
    tree = _Replace(node, changed).visit(tree)
    first = next(place for place, each in enumerate(tree.body) if isinstance(each, ast.Import | ast.ImportFrom)) + 1
    tree.body.insert(first, ast.ImportFrom("engine.algebra", [ast.alias("scalars", SCALARS)], 0))
    return ast.fix_missing_locations(tree)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    for node in ast.walk(tree):
        for operator in OPERATORS:
            for what, changed in operator(node):
                yield node, what, changed


def _statements(tree: ast.Module) -> dict[int, tuple[int, int]]:
    """The lines of the innermost statement around each node of a function's body."""
    found: dict[int, tuple[int, int]] = {}

    def look(node: ast.AST, around: tuple[int, int] | None) -> None:
        if around is not None:
            found[id(node)] = around
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.stmt) and (around or (isinstance(node, ast.FunctionDef) and name == "body")):
                    look(child, (child.lineno, child.end_lineno or child.lineno))
                elif isinstance(child, ast.AST):
                    look(child, around)

    look(tree, None)
    return found


def _line(node: ast.AST) -> int:
    return min((each.lineno for each in ast.walk(node) if hasattr(each, "lineno")), default=0)


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, other: ast.expr) -> None:
        self._node = node
        self._other = other

    def visit(self, node: ast.AST) -> ast.AST:
        return self._other if node is self._node else self.generic_visit(node)
