"""From a query to the change of its result: one file for each family of operators, one rule for each operator.

`delta(tree)` is a tree of weighted rows. The rules are exact because the old version of every source can be read.
They are written without regard to cost; the optimizer prunes what did not change.
"""

from engine.compile.differentiate import aggregate, exists, join, linear, outer_join, recursive, window
from engine.compile.differentiate.dispatch import Rule, change_of, delta, rule_of
from engine.compile.differentiate.growing import only_grows

__all__ = [
    "Rule",
    "aggregate",
    "change_of",
    "delta",
    "exists",
    "join",
    "linear",
    "only_grows",
    "outer_join",
    "recursive",
    "rule_of",
    "window",
]
