"""What the shop's five sources look like, and what a new customer, product or total is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class TableShape:
    """A source of the demo: its columns as Delta types, and the ones that identify a row."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]


CUSTOMERS = TableShape(
    "customers",
    (
        ("customer_id", "bigint"),
        ("name", "string"),
        ("region", "string"),
        ("segment", "string"),
        ("joined_at", "timestamp"),
    ),
    ("customer_id",),
)
PRODUCTS = TableShape(
    "products",
    (
        ("product_id", "bigint"),
        ("name", "string"),
        ("category", "string"),
        ("price", "decimal(12,2)"),
        ("discontinued", "boolean"),
    ),
    ("product_id",),
)
ORDERS = TableShape(
    "orders",
    (
        ("order_id", "bigint"),
        ("customer_id", "bigint"),
        ("ordered_at", "timestamp"),
        ("status", "string"),
        ("channel", "string"),
    ),
    ("order_id",),
)
ORDER_ITEMS = TableShape(
    "order_items",
    (
        ("order_id", "bigint"),
        ("line", "int"),
        ("product_id", "bigint"),
        ("quantity", "int"),
        ("unit_price", "decimal(12,2)"),
    ),
    ("order_id", "line"),
)
PAYMENTS = TableShape(
    "payments",
    (
        ("payment_id", "bigint"),
        ("order_id", "bigint"),
        ("paid_at", "timestamp"),
        ("method", "string"),
        ("amount", "decimal(12,2)"),
        ("status", "string"),
    ),
    ("payment_id",),
)
TABLES = (CUSTOMERS, PRODUCTS, ORDERS, ORDER_ITEMS, PAYMENTS)

REGIONS = ("north", "south", "east", "west", "islands")
REGION_WEIGHTS = (34, 27, 21, 14, 4)
SEGMENTS = ("private", "business", "school")
SEGMENT_WEIGHTS = (70, 24, 6)
CHANNELS = ("web", "app", "store", "phone")
CHANNEL_WEIGHTS = (48, 37, 12, 3)
METHODS = ("card", "transfer", "wallet", "voucher")
METHOD_WEIGHTS = (58, 18, 20, 4)
#: category -> typical price and how far prices spread around it
CATEGORIES = {
    "kitchen": (34.0, 0.7),
    "garden": (58.0, 0.8),
    "books": (16.0, 0.4),
    "toys": (24.0, 0.6),
    "lighting": (72.0, 0.6),
    "office": (19.0, 0.9),
    "sport": (65.0, 0.7),
    "textiles": (29.0, 0.5),
}
THINGS = {
    "kitchen": ("pan", "kettle", "knife", "bowl", "grinder", "apron"),
    "garden": ("spade", "hose", "planter", "bench", "lantern", "trellis"),
    "books": ("atlas", "novel", "cookbook", "almanac", "primer", "comic"),
    "toys": ("kite", "puzzle", "train", "blocks", "puppet", "marbles"),
    "lighting": ("lamp", "chandelier", "spotlight", "sconce", "strip", "torch"),
    "office": ("stapler", "notebook", "folder", "pen", "desk pad", "ruler"),
    "sport": ("racket", "rope", "mat", "ball", "helmet", "skates"),
    "textiles": ("blanket", "towel", "rug", "curtain", "cushion", "quilt"),
}
MAKERS = ("oak", "birch", "slate", "copper", "linen", "amber", "cobalt", "ivory", "cedar", "flint")
FIRST_NAMES = (
    "Ada",
    "Bo",
    "Cleo",
    "Dov",
    "Eva",
    "Finn",
    "Gita",
    "Hugo",
    "Ines",
    "Jon",
    "Kaya",
    "Lars",
    "Mia",
)
LAST_NAMES = ("Amsel", "Brook", "Castell", "Dorn", "Ek", "Farrow", "Galt", "Holm", "Ivers", "Jansen", "Kerr")


def cents(amount: Decimal) -> Decimal:
    return max(Decimal("0.01"), amount.quantize(Decimal("0.01")))


def order_total(lines: Sequence[Row]) -> Decimal:
    return sum((line["quantity"] * line["unit_price"] for line in lines), Decimal("0.00"))


def key_of(shape: TableShape, row: Row) -> Row:
    return {column: row[column] for column in shape.key}


def new_customer(chance: random.Random, customer_id: int, joined_at: datetime) -> Row:
    return {
        "customer_id": customer_id,
        "name": f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}",
        "region": chance.choices(REGIONS, REGION_WEIGHTS)[0],
        "segment": chance.choices(SEGMENTS, SEGMENT_WEIGHTS)[0],
        "joined_at": joined_at,
    }


def new_product(chance: random.Random, product_id: int) -> Row:
    category = chance.choice(tuple(CATEGORIES))
    typical, spread = CATEGORIES[category]
    price = Decimal(str(round(typical * chance.lognormvariate(0, spread), 2)))
    return {
        "product_id": product_id,
        "name": f"{chance.choice(MAKERS)} {chance.choice(THINGS[category])}",
        "category": category,
        "price": cents(price),
        "discontinued": False,
    }
