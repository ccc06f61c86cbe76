"""Rules that make a tree cheaper without changing its rows: one file, one function each.

The order is part of the design, so it is written down here with its reasons, once for plans (made when a query is
compiled) and once for statements (bound to one refresh).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.algebra.nodes import Node
from engine.compile.optimize.drop_guards import drop_guards
from engine.compile.optimize.grow_from_change import grow_from_change
from engine.compile.optimize.merge_projects import merge_projects
from engine.compile.optimize.outer_to_inner import outer_to_inner
from engine.compile.optimize.prune_columns import prune_columns
from engine.compile.optimize.prune_empty import prune_empty
from engine.compile.optimize.push_filters import push_filters
from engine.compile.optimize.push_touched_keys import push_touched_keys
from engine.compile.optimize.share_equal import share_equal
from engine.compile.picture import Picture
from engine.errors import InternalError

Rule = Callable[[Node], Node]

PLAN_RULES: tuple[Rule, ...] = (
    merge_projects,  # first: derived tables leave projections between operators that belong together
    push_filters,  # a filter below a join makes the change small before anything else looks at it
    outer_to_inner,  # where filters ended up, it is known which rows without a partner they refuse
    push_filters,  # a join that became an inner one lets them further down, and among its conditions
    merge_projects,  # filters that moved leave projections next to each other
    prune_columns,  # then what the filters still need is known
)

STATEMENT_RULES: tuple[Rule, ...] = (
    prune_empty,  # first: most branches are about sources that did not change
    drop_guards,  # only then: what is guarded by a change that cannot be is gone already
    push_touched_keys,  # keys of the change become filters close to the leaves
    grow_from_change,  # after that the order of joins is decided on what is left
    prune_columns,  # branches that went took columns with them
    share_equal,  # last: what is equal now stays so
)


@dataclass(frozen=True)
class Optimized:
    root: Node
    pictures: tuple[Picture, ...]


def optimize(root: Node, rules: tuple[Rule, ...], prefix: str = "") -> Optimized:
    """Applies the rules in order, keeps a picture of each, and checks that none changes the columns."""
    pictures = []
    for rule in rules:
        began = time.perf_counter()
        changed = rule(root)
        if [(c.name, c.type) for c in changed.columns] != [(c.name, c.type) for c in root.columns]:
            raise InternalError(f"the rule {rule.__name__} changed the columns of the result")
        took_ms = (time.perf_counter() - began) * 1000
        pictures.append(Picture(prefix + rule.__name__, changed, root, took_ms))
        root = changed
    return Optimized(root, tuple(pictures))
