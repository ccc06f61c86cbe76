"""What is known of functions: what each makes, and which give the same answer for the same arguments.

    scalars      functions of one row, by family
    changing     those that give another answer each time, with the reason
    aggregates   functions of a group, with what a compiler has to know of each
    rows         functions over windows, generators, relations, groupings
    names        which function a node of the syntax tree is
    classify     what in a query changes by itself
    declared     functions that somebody made: what they declare, and what their bodies say
    clock        a moment written in place of calls that read the clock
    policy       what follows from it

Every function of Spark 4.2 is in exactly one of the tables; a test asks Spark. Whatever else is called is of unknown
volatility, which is treated as volatile: nothing is maintained differentially on a guess.
"""

from __future__ import annotations

from engine.compile.functions.aggregates import AGGREGATES, AggregateFunction, Order
from engine.compile.functions.classify import Finding, classify, refined
from engine.compile.functions.clock import ClockCall, at_moment, clock_calls, is_clock, names_given
from engine.compile.functions.declared import Declared, declared
from engine.compile.functions.known import FUNCTIONS, is_forbidden, kind, known, volatility
from engine.compile.functions.model import Function, Kind, Volatility, worst
from engine.compile.functions.names import LITERAL_FUNCTIONS, calls, name_of
from engine.compile.functions.policy import FunctionRules, Ruling, VolatileFunctionPolicy, rule, volatile_in_full

__all__ = [
    "AGGREGATES",
    "FUNCTIONS",
    "LITERAL_FUNCTIONS",
    "AggregateFunction",
    "ClockCall",
    "Declared",
    "Finding",
    "Function",
    "FunctionRules",
    "Kind",
    "Order",
    "Ruling",
    "VolatileFunctionPolicy",
    "Volatility",
    "at_moment",
    "calls",
    "classify",
    "clock_calls",
    "declared",
    "is_clock",
    "is_forbidden",
    "kind",
    "known",
    "name_of",
    "names_given",
    "refined",
    "rule",
    "volatile_in_full",
    "volatility",
    "worst",
]
