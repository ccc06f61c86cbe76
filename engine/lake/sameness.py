"""Do two texts mean the same query to Spark?

Frames have a `sameSemantics` of their own, which finds a CTE different from itself, and DATE '2020-01-01' from a cast
of the string. So plans are compared after the numbers of CTEs are normalised and constants are folded, and once more
after CTEs stand where they are named, which a query of pipes is read as: by rules of Spark's optimizer that look at
nothing but the plan.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

#: what names columns and relations in a plan: `#17` in its text, ids in its JSON
_NAMING_NUMBERS = re.compile(r'(#|"id":)(\d+)')


def same(jvm: Any, one: Any, other: Any) -> bool:
    """Of two frames."""
    one, other = _plain(jvm, one), _plain(jvm, other)
    if one.sameResult(other):
        return True
    # Spark gives recursions, and columns that a step in between dropped, numbers by which it finds no two alike; and
    # where it puts sides in order, it goes by such numbers too
    one, other = _inlined(jvm, one), _inlined(jvm, other)
    return _in_words(one) == _in_words(other) or _in_words(one.canonicalized()) == _in_words(other.canonicalized())


def _plain(jvm: Any, frame: Any) -> Any:
    from pyspark.errors import PySparkException

    rules = jvm.org.apache.spark.sql.catalyst.optimizer
    plan = frame._jdf.queryExecution().normalized()
    for rule in (rules.ReplaceExpressions, rules.ConstantFolding, rules.BooleanSimplification):
        # a constant that cannot be computed (1/0, DATE 'today' by itself) stays as it is written
        with suppress(PySparkException):
            plan = rule.apply(plan)
    return plan


def _inlined(jvm: Any, plan: Any) -> Any:
    """Without CTEs, and without the steps that only name or pass on what is below."""
    catalyst = jvm.org.apache.spark.sql.catalyst
    rules = (
        catalyst.optimizer.InlineCTE(True, False),
        catalyst.expressions.EliminatePipeOperators,
        catalyst.analysis.EliminateSubqueryAliases,
        *(catalyst.optimizer.RemoveRedundantAliases, catalyst.optimizer.CollapseProject) * 2,
        catalyst.optimizer.RemoveNoopOperators,
    )
    for rule in rules:
        plan = rule.apply(plan)
    return plan


def _in_words(plan: Any) -> tuple[str, str]:
    """All that a plan says: as a tree, and as JSON, which tells types too."""
    return renumbered(plan.toString()), renumbered(plan.toJSON())


def renumbered(text: str) -> str:
    """With its numbers counted in the order in which they appear."""
    seen: dict[str, int] = {}
    return _NAMING_NUMBERS.sub(lambda found: f"{found[1]}{seen.setdefault(found[2], len(seen))}", text)
