"""The simulated shop: repeatable, consistent in itself, skewed, and it never runs out of things to happen."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from engine.demo.rows import TABLES
from engine.demo.shop import REMEMBERED_ORDERS, Size, open_shop, reopen_shop

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SMALL = Size(customers=60, products=25, orders=300)


class Ledger:
    """The tables as a list of changes leaves them; refuses what no database would accept."""

    def __init__(self, tables):
        self.keys = {shape.name: shape.key for shape in TABLES}
        self.rows = {name: {self.key(name, row): row for row in rows} for name, rows in tables.items()}

    def key(self, table, row):
        return tuple(row[column] for column in self.keys[table])

    def apply(self, change):
        rows = self.rows[change.table]
        touched = [self.key(change.table, row) for row in (*change.inserts, *change.updates, *change.deletes)]
        assert len(touched) == len(set(touched)), f"a row is changed twice in one commit: {change}"
        for row in change.inserts:
            assert self.key(change.table, row) not in rows
            rows[self.key(change.table, row)] = row
        for row in change.updates:
            assert self.key(change.table, row) in rows
            rows[self.key(change.table, row)] = row
        for row in change.deletes:
            del rows[self.key(change.table, row)]

    def table(self, name):
        return list(self.rows[name].values())


def run(steps, seed=7):
    shop, tables = open_shop(seed, NOON, SMALL)
    ledger = Ledger(tables)
    moments = []
    for step in range(steps):
        moment = shop.next_moment(NOON + timedelta(seconds=step))
        moments.append(moment)
        for change in moment.changes:
            ledger.apply(change)
    return shop, ledger, moments


def test_the_same_seed_tells_the_same_story():
    assert run(200)[2] == run(200)[2]
    assert run(200)[2] != run(200, seed=8)[2]


def test_every_kind_of_change_happens_to_consistent_tables():
    _, ledger, moments = run(1_500)
    kinds = Counter()
    for moment in moments:
        assert moment.changes, f"nothing happened in {moment.what!r}"
        for change in moment.changes:
            assert change.rows
            kinds.update({(change.table, "insert"): len(change.inserts)})
            kinds.update({(change.table, "update"): len(change.updates)})
            kinds.update({(change.table, "delete"): len(change.deletes)})
    for table in ("orders", "order_items", "payments"):
        assert all(kinds[table, kind] > 0 for kind in ("insert", "update", "delete")), table
    for table in ("customers", "products"):
        assert kinds[table, "insert"] > 0, table
        assert kinds[table, "update"] > 0, table
    orders = {row["order_id"] for row in ledger.table("orders")}
    assert {row["order_id"] for row in ledger.table("order_items")} <= orders
    assert {row["order_id"] for row in ledger.table("payments")} <= orders
    customers = {row["customer_id"] for row in ledger.table("customers")}
    assert {row["customer_id"] for row in ledger.table("orders")} <= customers
    products = {row["product_id"] for row in ledger.table("products")}
    assert {row["product_id"] for row in ledger.table("order_items")} <= products


def test_rows_have_exactly_the_columns_of_their_table():
    shop, tables = open_shop(7, NOON, SMALL)
    for shape in TABLES:
        names = [name for name, _ in shape.columns]
        assert tables[shape.name]
        assert all(list(row) == names for row in tables[shape.name])
    for _ in range(300):
        for change in shop.next_moment(NOON).changes:
            shape = next(shape for shape in TABLES if shape.name == change.table)
            assert all(list(row) == [name for name, _ in shape.columns] for row in change.inserts)
            assert all(list(row) == [name for name, _ in shape.columns] for row in change.updates)
            assert all(list(row) == list(shape.key) for row in change.deletes)


def test_some_rows_arrive_late():
    _, _, moments = run(1_500)
    ages = [
        NOON + timedelta(seconds=step) - row["ordered_at"]
        for step, moment in enumerate(moments)
        for change in moment.changes
        if change.table == "orders"
        for row in change.inserts
    ]
    late = [age for age in ages if age > timedelta(hours=1)]
    assert 0.01 < len(late) / len(ages) < 0.1


def test_few_customers_and_products_take_part_in_much():
    _, tables = open_shop(7, NOON, Size(customers=500, products=100, orders=5_000))
    by_customer = Counter(row["customer_id"] for row in tables["orders"])
    by_product = Counter(row["product_id"] for row in tables["order_items"])
    busiest = sum(count for _, count in by_customer.most_common(50))
    assert busiest > 0.4 * len(tables["orders"])
    assert sum(count for _, count in by_product.most_common(10)) > 0.4 * len(tables["order_items"])


def test_money_has_cents_and_is_positive():
    _, ledger, _ = run(500)
    prices = [row["price"] for row in ledger.table("products")]
    prices += [row["unit_price"] for row in ledger.table("order_items")]
    assert all(price >= Decimal("0.01") and price == price.quantize(Decimal("0.01")) for price in prices)
    assert all(row["amount"] >= 0 for row in ledger.table("payments"))


def test_memory_is_bounded():
    shop, _ = open_shop(7, NOON, Size(customers=50, products=20, orders=REMEMBERED_ORDERS + 500))
    for step in range(300):
        shop.next_moment(NOON + timedelta(seconds=step))
    assert len(shop.orders) <= REMEMBERED_ORDERS
    assert set(shop.items) <= set(shop.orders)
    assert {row["order_id"] for row in shop.payments.values()} <= set(shop.orders)


def test_a_reopened_shop_goes_on_where_the_tables_are():
    _, ledger, _ = run(400)
    tables = {shape.name: ledger.table(shape.name) for shape in TABLES}
    next_ids = {shape.name: 1 + max(row[shape.key[0]] for row in tables[shape.name]) for shape in TABLES}
    shop = reopen_shop(7, tables, next_ids)
    for step in range(400):
        for change in shop.next_moment(NOON + timedelta(seconds=step)).changes:
            ledger.apply(change)


@pytest.mark.parametrize("size", [Size(customers=1, products=1, orders=0), Size(3, 1, 1)])
def test_a_tiny_shop_still_sells(size):
    shop, tables = open_shop(7, NOON, size)
    ledger = Ledger(tables)
    for step in range(200):
        for change in shop.next_moment(NOON + timedelta(seconds=step)).changes:
            ledger.apply(change)
    assert ledger.table("orders")
