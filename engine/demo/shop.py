"""The shop as a pure simulation: what its five tables hold, and what happens next.

Nothing here reads a file or a clock. `open_shop` makes the first rows; `Shop.next_moment` makes one business
moment (a few orders, a payment that arrives late, a corrected line, a cancelled order …) as one change per
table. Customers and products are skewed as in real shops: few of them take part in most of the orders.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from engine.demo.rows import (
    CHANNEL_WEIGHTS,
    CHANNELS,
    METHOD_WEIGHTS,
    METHODS,
    ORDER_ITEMS,
    ORDERS,
    PAYMENTS,
    REGION_WEIGHTS,
    REGIONS,
    Row,
    cents,
    key_of,
    new_customer,
    new_product,
    order_total,
)

#: an order goes through these; a cancelled one leaves from any but the last
NEXT_STATUS = {"placed": "packed", "packed": "shipped", "shipped": "delivered"}

#: how many of the latest orders the shop remembers in order to change them
REMEMBERED_ORDERS = 3_000


@dataclass(frozen=True)
class Size:
    """How many rows a new shop starts with."""

    customers: int = 2_000
    products: int = 400
    orders: int = 20_000


@dataclass(frozen=True)
class TableChange:
    """What one commit does to one table. Updates carry whole rows; deletes carry the key columns."""

    table: str
    inserts: tuple[Row, ...] = ()
    updates: tuple[Row, ...] = ()
    deletes: tuple[Row, ...] = ()

    @property
    def rows(self) -> int:
        return len(self.inserts) + len(self.updates) + len(self.deletes)


@dataclass(frozen=True)
class Moment:
    """One thing that happened in the shop; its changes are committed table by table, in this order."""

    what: str
    changes: tuple[TableChange, ...]


class Skew:
    """Picks from n things so that the i-th is taken in proportion to 1 / (i + 1)^exponent."""

    def __init__(self, count: int, exponent: float) -> None:
        weights = (1.0 / (rank + 1) ** exponent for rank in range(count))
        self._cumulative = list(itertools.accumulate(weights))

    def pick(self, chance: random.Random) -> int:
        return bisect.bisect(self._cumulative, chance.random() * self._cumulative[-1])


@dataclass
class Shop:
    """What the shop has to remember in order to go on. Everything else is in its tables."""

    chance: random.Random
    customers: dict[int, Row]
    products: dict[int, Row]
    #: the latest orders, oldest first, and the lines and payments of each
    orders: dict[int, Row]
    items: dict[int, list[Row]]
    payments: dict[int, Row]
    next_customer: int
    next_product: int
    next_order: int
    next_payment: int
    _customer_skew: Skew = field(init=False)
    _product_skew: Skew = field(init=False)

    def __post_init__(self) -> None:
        self._customer_skew = Skew(max(1, len(self.customers)), 0.8)
        self._product_skew = Skew(max(1, len(self.products)), 1.0)
        self._customer_ids = list(self.customers)
        self._product_ids = list(self.products)

    def next_moment(self, now: datetime) -> Moment:
        """What happens next, remembered and returned."""
        happenings = (
            (self._orders_arrive, 46),
            (self._orders_move_on, 22),
            (self._payments_arrive, 16),
            (self._line_is_corrected, 6),
            (self._order_is_cancelled, 4),
            (self._price_changes, 3),
            (self._customers_change, 2),
            (self._flash_sale, 1),
        )
        happening = self.chance.choices([what for what, _ in happenings], [often for _, often in happenings])[0]
        moment = happening(now)
        # there may be nothing to pay, move or correct: then somebody orders
        return moment if moment.changes else self._orders_arrive(now)

    def _orders_arrive(self, now: datetime) -> Moment:
        count = 1 + min(int(self.chance.expovariate(0.5)), 11)
        return self._sell("orders arrive", [now] * count)

    def _flash_sale(self, now: datetime) -> Moment:
        count = self.chance.randint(60, 160)
        return self._sell("flash sale", [now - timedelta(seconds=self.chance.random() * 30) for _ in range(count)])

    def _sell(self, what: str, times: Sequence[datetime]) -> Moment:
        orders, items = [], []
        for at in times:
            # the till of a store without a line reports hours later
            late = self.chance.random() < 0.04
            ordered_at = at - timedelta(hours=self.chance.uniform(1, 30)) if late else at
            order, lines = self.new_order(ordered_at, "placed")
            orders.append(order)
            items.extend(lines)
        self.forget_old_orders()
        return Moment(
            what,
            (
                TableChange("orders", inserts=tuple(orders)),
                TableChange("order_items", inserts=tuple(items)),
            ),
        )

    def new_order(self, ordered_at: datetime, status: str) -> tuple[Row, list[Row]]:
        order_id = self.next_order
        self.next_order += 1
        order = {
            "order_id": order_id,
            "customer_id": self._customer_ids[self._customer_skew.pick(self.chance)],
            "ordered_at": ordered_at,
            "status": status,
            "channel": self.chance.choices(CHANNELS, CHANNEL_WEIGHTS)[0],
        }
        lines = [self._new_line(order_id, line) for line in range(1, 1 + self._line_count())]
        self.orders[order_id] = order
        self.items[order_id] = lines
        return order, lines

    def _line_count(self) -> int:
        return min(1 + int(self.chance.expovariate(0.7)), 9)

    def _new_line(self, order_id: int, line: int) -> Row:
        product = self.products[self._product_ids[self._product_skew.pick(self.chance)]]
        return {
            "order_id": order_id,
            "line": line,
            "product_id": product["product_id"],
            "quantity": min(1 + int(self.chance.expovariate(0.9)), 24),
            "unit_price": product["price"],
        }

    def _orders_move_on(self, now: datetime) -> Moment:
        open_ids = [key for key, order in self.orders.items() if order["status"] in NEXT_STATUS]
        moving = self.chance.sample(open_ids, min(len(open_ids), self.chance.randint(1, 9)))
        updates = []
        for order_id in moving:
            order = self.orders[order_id]
            self.orders[order_id] = {**order, "status": NEXT_STATUS[order["status"]]}
            updates.append(self.orders[order_id])
        return Moment("orders move on", changes(TableChange("orders", updates=tuple(updates))))

    def _payments_arrive(self, now: datetime) -> Moment:
        # chosen before new ones come in: a commit changes a row once
        pending = [row for row in self.payments.values() if row["status"] == "pending"][:2]
        paid = {payment["order_id"] for payment in self.payments.values()}
        owed = [key for key, order in self.orders.items() if key not in paid and order["status"] != "cancelled"]
        inserts = []
        for order_id in self.chance.sample(owed, min(len(owed), self.chance.randint(1, 6))):
            # banks book with a delay: the row is new, what it tells is not
            late_h = self.chance.uniform(2, 48) if self.chance.random() < 0.15 else 0.0
            inserts.append(self.new_payment(order_id, now - timedelta(hours=late_h), self._payment_status()))
        updates = []
        for row in pending:
            self.payments[row["payment_id"]] = {**row, "status": "settled", "paid_at": now}
            updates.append(self.payments[row["payment_id"]])
        change = TableChange("payments", inserts=tuple(inserts), updates=tuple(updates))
        return Moment("payments arrive", changes(change))

    def _payment_status(self) -> str:
        return self.chance.choices(("settled", "pending", "failed"), (86, 11, 3))[0]

    def new_payment(self, order_id: int, paid_at: datetime, status: str) -> Row:
        payment = {
            "payment_id": self.next_payment,
            "order_id": order_id,
            "paid_at": paid_at,
            "method": self.chance.choices(METHODS, METHOD_WEIGHTS)[0],
            "amount": order_total(self.items.get(order_id, [])),
            "status": status,
        }
        self.payments[self.next_payment] = payment
        self.next_payment += 1
        return payment

    def _line_is_corrected(self, now: datetime) -> Moment:
        """Somebody counted wrong: a quantity changes, or a line goes, and the payment follows it."""
        candidates = [key for key, lines in self.items.items() if len(lines) > 1]
        if not candidates:
            return Moment("line corrected", ())
        order_id = self.chance.choice(candidates)
        lines = self.items[order_id]
        wrong = self.chance.randrange(len(lines))
        updates: tuple[Row, ...] = ()
        deletes: tuple[Row, ...] = ()
        if self.chance.random() < 0.7:
            fixed = {
                **lines[wrong],
                "quantity": max(1, lines[wrong]["quantity"] + self.chance.choice((-1, 1, 2))),
            }
            self.items[order_id] = [*lines[:wrong], fixed, *lines[wrong + 1 :]]
            updates = (fixed,) if fixed != lines[wrong] else ()
        else:
            deletes = (key_of(ORDER_ITEMS, lines[wrong]),)
            self.items[order_id] = [*lines[:wrong], *lines[wrong + 1 :]]
        follow = []
        for payment in [row for row in self.payments.values() if row["order_id"] == order_id]:
            amended = {**payment, "amount": order_total(self.items[order_id])}
            if amended != payment:
                self.payments[payment["payment_id"]] = amended
                follow.append(amended)
        return Moment(
            "line corrected",
            changes(
                TableChange("order_items", updates=updates, deletes=deletes),
                TableChange("payments", updates=tuple(follow)),
            ),
        )

    def _order_is_cancelled(self, now: datetime) -> Moment:
        """The order stays as cancelled, its lines go; a test order goes altogether."""
        open_ids = [key for key, order in self.orders.items() if order["status"] in NEXT_STATUS]
        if not open_ids:
            return Moment("order cancelled", ())
        order_id = self.chance.choice(open_ids)
        order, lines = self.orders[order_id], self.items.pop(order_id, [])
        gone = [row for row in self.payments.values() if row["order_id"] == order_id]
        for row in gone:
            del self.payments[row["payment_id"]]
        if self.chance.random() < 0.3:
            del self.orders[order_id]
            order_change = TableChange("orders", deletes=(key_of(ORDERS, order),))
        else:
            self.orders[order_id] = {**order, "status": "cancelled"}
            order_change = TableChange("orders", updates=(self.orders[order_id],))
        return Moment(
            "order cancelled",
            changes(
                order_change,
                TableChange("order_items", deletes=tuple(key_of(ORDER_ITEMS, line) for line in lines)),
                TableChange("payments", deletes=tuple(key_of(PAYMENTS, row) for row in gone)),
            ),
        )

    def _price_changes(self, now: datetime) -> Moment:
        """Prices move, a product is discontinued now and then, and a new one takes its place."""
        updates = []
        for product_id in self.chance.sample(self._product_ids, min(len(self._product_ids), 3)):
            product = self.products[product_id]
            factor = Decimal(self.chance.choice(("0.90", "0.95", "1.03", "1.05", "1.12")))
            self.products[product_id] = {**product, "price": cents(product["price"] * factor)}
            updates.append(self.products[product_id])
        inserts: tuple[Row, ...] = ()
        if self.chance.random() < 0.3:
            retired = updates[-1]["product_id"]
            self.products[retired] = updates[-1] = {**updates[-1], "discontinued": True}
            product = new_product(self.chance, self.next_product)
            self.next_product += 1
            self.products[product["product_id"]] = product
            # it takes over the rank, and with it the demand, of the one that it replaces
            self._product_ids[self._product_ids.index(retired)] = product["product_id"]
            inserts = (product,)
        return Moment("prices change", changes(TableChange("products", inserts=inserts, updates=tuple(updates))))

    def _customers_change(self, now: datetime) -> Moment:
        """People sign up and move; who moves takes all their past revenue to another region."""
        inserts = []
        for _ in range(self.chance.randint(1, 4)):
            customer = new_customer(self.chance, self.next_customer, now)
            self.next_customer += 1
            self.customers[customer["customer_id"]] = customer
            inserts.append(customer)
        mover = self.customers[self.chance.choice(self._customer_ids)]
        moved = {**mover, "region": self.chance.choices(REGIONS, REGION_WEIGHTS)[0]}
        self.customers[mover["customer_id"]] = moved
        updates = (moved,) if moved != mover else ()
        return Moment("customers change", changes(TableChange("customers", inserts=tuple(inserts), updates=updates)))

    def forget_old_orders(self) -> None:
        """The shop runs for days in bounded memory: old orders stay as they are, in the tables only."""
        surplus = len(self.orders) - REMEMBERED_ORDERS
        for order_id in list(itertools.islice(self.orders, max(0, surplus))):
            del self.orders[order_id]
            self.items.pop(order_id, None)
        if surplus > 0:
            self.payments = {key: row for key, row in self.payments.items() if row["order_id"] in self.orders}


def open_shop(seed: int, now: datetime, size: Size) -> tuple[Shop, dict[str, list[Row]]]:
    """A shop that has been open for a month, and the rows of its tables."""
    chance = random.Random(seed)  # noqa: S311 - a simulation that can be repeated, no secret
    opened_at = now - timedelta(days=30)
    customers = [new_customer(chance, 1 + n, opened_at) for n in range(size.customers)]
    products = [new_product(chance, 1 + n) for n in range(size.products)]
    shop = Shop(
        chance=chance,
        customers={row["customer_id"]: row for row in customers},
        products={row["product_id"]: row for row in products},
        orders={},
        items={},
        payments={},
        next_customer=1 + len(customers),
        next_product=1 + len(products),
        next_order=1,
        next_payment=1,
    )
    orders: list[Row] = []
    items: list[Row] = []
    payments: list[Row] = []
    for n in range(size.orders):
        age = timedelta(days=30) * (1 - n / size.orders)
        days = age / timedelta(days=1)
        status = chance.choices(("delivered", "shipped", "packed", "placed"), status_weights(days))[0]
        order, lines = shop.new_order(now - age, status)
        orders.append(order)
        items.extend(lines)
        if chance.random() < (0.97 if days > 1 else 0.7):
            paid_at = now - age * chance.uniform(0.9, 1.0)
            payments.append(shop.new_payment(order["order_id"], paid_at, "settled"))
    shop.forget_old_orders()
    return shop, {
        "customers": customers,
        "products": products,
        "orders": orders,
        "order_items": items,
        "payments": payments,
    }


def status_weights(age_days: float) -> tuple[int, int, int, int]:
    """How far an order of that age usually has come: delivered, shipped, packed, placed."""
    if age_days > 5:
        return (98, 1, 1, 0)
    if age_days > 1:
        return (40, 45, 12, 3)
    return (2, 18, 30, 50)


def reopen_shop(seed: int, tables: dict[str, list[Row]], next_ids: dict[str, int]) -> Shop:
    """The shop as its tables say: `tables` holds all customers and products and the latest orders."""
    items: dict[int, list[Row]] = {}
    for line in sorted(tables["order_items"], key=lambda line: int(line["line"])):
        items.setdefault(line["order_id"], []).append(line)
    shop = Shop(
        # another seed at every start, or the same customers would order the same things again
        chance=random.Random(seed * 1_000_003 + next_ids["orders"]),  # noqa: S311 - as above
        customers=by_id(tables["customers"], "customer_id"),
        products={key: row for key, row in by_id(tables["products"], "product_id").items() if not row["discontinued"]},
        orders=by_id(tables["orders"], "order_id"),
        items=items,
        payments=by_id(tables["payments"], "payment_id"),
        next_customer=next_ids["customers"],
        next_product=next_ids["products"],
        next_order=next_ids["orders"],
        next_payment=next_ids["payments"],
    )
    shop.forget_old_orders()
    return shop


def by_id(rows: Sequence[Row], column: str) -> dict[int, Row]:
    return {row[column]: row for row in sorted(rows, key=lambda row: int(row[column]))}


def changes(*candidates: TableChange) -> tuple[TableChange, ...]:
    """Those of the changes that change something."""
    return tuple(change for change in candidates if change.rows)
