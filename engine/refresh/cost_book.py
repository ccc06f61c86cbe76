"""Where what refreshes took is written down: in the catalog, so that it outlives the process.

Whoever loses it loses time: it is learned anew.
"""

from __future__ import annotations

from engine.catalog.store import Catalog
from engine.codec import MalformedRecord, dumps, loads
from engine.compile.plan import MaintenancePlan
from engine.records import StreamTable
from engine.refresh.costs import Costs, Shape
from engine.refresh.work import shape_of


def read(catalog: Catalog, table: StreamTable, plan: MaintenancePlan | None = None) -> Costs:
    """What is known of its present query. Without its plan, and before its first refresh, that is nothing."""
    fingerprint = table.fingerprint if plan is None else plan.fingerprint
    text = catalog.get_costs(table.id)
    if text is not None:
        known = _understood(text)
        if known is not None and known.shape.fingerprint == fingerprint:
            return known
    return Costs(Shape(fingerprint) if plan is None else shape_of(plan))


def write(catalog: Catalog, table: StreamTable, costs: Costs) -> None:
    catalog.save_costs(table.id, dumps(costs))


def _understood(text: str) -> Costs | None:
    try:
        return loads(Costs, text)
    except MalformedRecord:
        return None  # of another program: learned anew
