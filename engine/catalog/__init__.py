"""What the workspace knows, in SQLite: definitions, progress, events and the scheduler's lease."""

from engine.catalog.lease import Holder, Lease
from engine.catalog.migrations import SCHEMA_VERSION
from engine.catalog.records import Progress
from engine.catalog.store import Catalog

__all__ = ["SCHEMA_VERSION", "Catalog", "Holder", "Lease", "Progress"]
