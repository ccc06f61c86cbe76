"""What happens to TPC-H between refreshes: the standard's two refresh functions, and all that it leaves out.

Orders come and go with their lines (RF1, RF2). Besides, quantities, prices, states, segments, brands and nations
change; keys change, of joins and of rows themselves; partners go together; what went comes back; rows come twice;
values get lost. All of it follows from a seed. Values are chosen so that they cross the queries' conditions.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.tpc.changes import Cycle, Cycles, Statement, delete, duplicate, insert, one_of, update

#: at scale 0.01
ORDERS, CUSTOMERS, PARTS, SUPPLIERS = 15_000, 1_500, 2_000, 100
#: of RF1 and RF2, for each cycle: a thousandth, as the standard has it
REFRESHED = ORDERS // 1_000
#: keys of orders that come; the generator leaves gaps, and stays below
FIRST_NEW_ORDER = 1_000_000

BRANDS = ("Brand#12", "Brand#13", "Brand#23", "Brand#34", "Brand#45")
CONTAINERS = ("SM CASE", "MED BAG", "MED BOX", "LG CASE", "JUMBO JAR")
TYPES = ("LARGE BRASS", "ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "MEDIUM POLISHED TIN", "SMALL PLATED BRASS")
PART_NAMES = ("forest green blue", "green lace", "forest almond", "red")
AIMED_PARTS = (
    ("SM CASE", "Brand#12", "ECONOMY ANODIZED STEEL"),
    ("MED BOX", "Brand#23", "LARGE BRASS"),
    ("LG CASE", "Brand#34", "PROMO BURNISHED COPPER"),
    ("MED BAG", "Brand#13", "ECONOMY ANODIZED STEEL"),
)
SEGMENTS = ("BUILDING", "AUTOMOBILE", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")
SHIP_MODES = ("MAIL", "SHIP", "AIR", "AIR REG", "TRUCK")
INSTRUCTIONS = ("DELIVER IN PERSON", "NONE")
ORDER_COMMENTS = ("as agreed", "the special kind of requests", "special requests", "nothing special")
SUPPLIER_COMMENTS = ("Customer Complaints", "Customer has seldom Complaints", "praise")
#: nations that queries ask for, and one that none asks for
NATIONS = {2: "BRAZIL", 3: "CANADA", 6: "FRANCE", 7: "GERMANY", 20: "SAUDI ARABIA", 0: "ALGERIA"}
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")


@dataclass
class Changes:
    """Makes one cycle after the other; remembers which orders are there."""

    random: random.Random
    next_order: int = FIRST_NEW_ORDER
    next_key: int = 100_000
    #: orders that came and their rows, by key: they can come back as they were
    came: dict[int, tuple[tuple, list[tuple]]] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)

    def cycle(self, number: int) -> Cycle:
        kinds = KINDS[number % len(KINDS)], *self.random.sample(KINDS, 2)
        statements = [*self.new_orders(REFRESHED), *self.old_orders_go(REFRESHED), *self.aimed()]
        for kind in kinds:
            statements += kind(self)
        return statements

    # ------------------------------------------------------------ the standard's refresh functions

    def new_orders(self, count: int) -> Cycle:
        orders, lines = [], []
        for _ in range(count):
            key, self.next_order = self.next_order, self.next_order + 1
            order, its_lines = self.order(key)
            self.came[key] = order, its_lines
            orders.append(order)
            lines += its_lines
        return [insert("orders", orders), insert("lineitem", lines)]

    def order(self, key: int) -> tuple[tuple, list[tuple]]:
        pick = self.random.choice
        ordered = datetime.date(1993, 1, 1) + datetime.timedelta(days=self.random.randrange(5 * 365))
        order = (
            key, self.customer(), pick("FOP"), self.amount(500_000), ordered.isoformat(), pick(PRIORITIES),
            f"Clerk#{key % 10:09}", 0, pick(ORDER_COMMENTS),
        )  # fmt: skip
        lines = []
        for number in range(1, self.random.randrange(1, 8) + 1):
            shipped, promised, received = (
                (ordered + datetime.timedelta(days=self.random.randrange(1, 90))).isoformat() for _ in range(3)
            )
            part = self.part()
            lines.append((
                key, part, _supplier_of(part, self.random.randrange(4)), number, self.random.randrange(1, 51),
                self.amount(90_000), f"0.0{self.random.randrange(10)}", f"0.0{self.random.randrange(9)}", pick("RAN"),
                pick("OF"), shipped, promised, received, pick(INSTRUCTIONS), pick(SHIP_MODES), "came later",
            ))  # fmt: skip
        return order, lines

    def old_orders_go(self, count: int) -> Cycle:
        keys = self.orders(count)
        oldest = [key for key in self.came if key not in self.gone][: count // 3]
        self.gone += oldest
        keys += oldest
        return [delete("orders", one_of("o_orderkey", keys)), delete("lineitem", one_of("l_orderkey", keys))]

    def aimed(self) -> Cycle:
        """A few orders, with all that they lead to, become such that the queries with many conditions see them."""
        orders, part, customer = self.orders(3), self.part(), self.customer()
        ordered = self.random.choice(((1995, 3, 10), (1993, 11, 2), (1994, 5, 5), (1996, 2, 1)))
        first = datetime.date(*ordered)
        shipped, promised, received = (first + datetime.timedelta(days=days) for days in (12, 20, 30))
        nation, supplier = self.random.choice(list(NATIONS)), _supplier_of(part, 0)
        container, brand, kind = self.random.choice(AIMED_PARTS)
        price = self.amount(self.random.choice((99_000, 900_000)))
        return [
            update(
                "part",
                f"p_type = '{kind}', p_brand = '{brand}', p_container = '{container}', p_size = 5,"
                f" p_name = '{self.random.choice(PART_NAMES)}'",
                f"p_partkey = {part}",
            ),
            update(
                "lineitem",
                f"l_partkey = {part}, l_suppkey = {supplier}, l_quantity = {self.random.choice((2, 10, 20))},"
                f" l_extendedprice = {price}, l_shipmode = 'AIR', l_returnflag = 'R',"
                f" l_shipinstruct = 'DELIVER IN PERSON', l_shipdate = DATE '{shipped}',"
                f" l_commitdate = DATE '{promised}', l_receiptdate = DATE '{received}'",
                f"l_linenumber < 3 AND {one_of('l_orderkey', orders)}",
            ),
            update(
                "orders", f"o_custkey = {customer}, o_orderdate = DATE '{first}', o_orderstatus = 'F'",
                one_of("o_orderkey", orders),
            ),
            update("customer", f"c_nationkey = {nation}, c_mktsegment = 'BUILDING'", f"c_custkey = {customer}"),
            update("supplier", f"s_nationkey = {self.random.choice((nation, 20))}", f"s_suppkey = {supplier}"),
            update("lineitem", "l_quantity = l_quantity + 90", one_of("l_orderkey", orders[:1])),
        ]  # fmt: skip

    # ------------------------------------------------------------ values change

    def quantities(self) -> Cycle:
        few, one = self.orders(6), self.orders(1)
        return [
            update("lineitem", "l_quantity = l_quantity + 3", one_of("l_orderkey", few)),
            update("lineitem", "l_quantity = 120", one_of("l_orderkey", one)),
        ]

    def prices(self) -> Cycle:
        parts = self.parts(3)
        return [
            update("lineitem", "l_extendedprice = l_extendedprice + 100.25, l_discount = 0.06", self.some_lines(5)),
            update("partsupp", "ps_supplycost = ps_supplycost - 0.75, ps_availqty = 20", one_of("ps_partkey", parts)),
            update("orders", "o_totalprice = o_totalprice + 1.01", one_of("o_orderkey", self.orders(5))),
        ]

    def states(self) -> Cycle:
        keys = one_of("o_orderkey", self.orders(20))
        late = "l_commitdate = DATE '1994-02-01', l_receiptdate = DATE '1994-02-09', l_shipdate = DATE '1994-01-20'"
        return [
            update("orders", f"o_orderstatus = '{self.random.choice('FOP')}'", keys),
            update("orders", "o_orderdate = DATE '1993-08-01', o_orderpriority = '1-URGENT'", self.some_orders(4)),
            update("lineitem", late, self.some_lines(4)),
            update("lineitem", "l_returnflag = 'R', l_linestatus = 'F'", self.some_lines(4)),
        ]

    def segments(self) -> Cycle:
        where = one_of("c_custkey", self.customers(12))
        nation, segment = self.random.choice(list(NATIONS)), self.random.choice(SEGMENTS)
        phone = f"{nation + 10}-555-1234"
        return [
            update("customer", f"c_mktsegment = '{segment}', c_nationkey = {nation}, c_phone = '{phone}'", where),
            update("customer", "c_acctbal = c_acctbal + 2500.50", one_of("c_custkey", self.customers(8))),
            update("orders", f"o_comment = '{self.random.choice(ORDER_COMMENTS)}'", self.some_orders(6)),
        ]

    def brands(self) -> Cycle:
        pick = self.random.choice
        kind = f"p_type = '{pick(TYPES)}', p_size = {pick((1, 5, 15, 49))}"
        name = f"p_name = '{pick(PART_NAMES)}'"
        return [
            update("part", "p_brand = 'Brand#13', p_container = 'MED BAG'", self.some_parts(4)),
            update("part", f"p_brand = '{pick(BRANDS)}', p_container = '{pick(CONTAINERS)}'", self.some_parts(8)),
            update("part", kind, self.some_parts(8)),
            update("part", name, self.some_parts(6)),
        ]

    def suppliers(self) -> Cycle:
        nation, comment = self.random.choice(list(NATIONS)), self.random.choice(SUPPLIER_COMMENTS)
        return [
            update("supplier", f"s_nationkey = {nation}", one_of("s_suppkey", self.some(SUPPLIERS, 3))),
            update("supplier", f"s_comment = '{comment}'", one_of("s_suppkey", self.some(SUPPLIERS, 2))),
        ]

    def nations(self) -> Cycle:
        """A nation moves, goes and comes back, two regions exchange names: little happens there, much follows."""
        nation, moved, one = self.random.choice(list(NATIONS)), [self.random.randrange(25)], self.random.randrange(5)
        other = (one + 1) % 5
        names = f"CASE WHEN r_regionkey = {one} THEN '{REGIONS[other]}' ELSE '{REGIONS[one]}' END"
        return [
            update("nation", f"n_regionkey = {self.random.randrange(5)}", one_of("n_nationkey", moved)),
            update("region", f"r_name = {names}", one_of("r_regionkey", (one, other))),
            delete("nation", f"n_nationkey = {nation}"),
            insert("nation", [(nation, NATIONS[nation], self.random.randrange(5), "came back")]),
            update("nation", "n_name = 'FRANCE'", "n_nationkey = 1"),
        ]

    # ------------------------------------------------------------ keys change

    def join_keys(self) -> Cycle:
        part = self.part()
        sold = f"l_partkey = {part}, l_suppkey = {_supplier_of(part, 0)}"
        return [
            update("lineitem", sold, self.some_lines(5)),
            update("orders", f"o_custkey = {self.customer()}", self.some_orders(10)),
            update("lineitem", f"l_orderkey = {self.orders(1)[0]}", self.some_lines(2)),
        ]

    def primary_keys(self) -> Cycle:
        """Some take their partners along, some lose them."""
        order, customer, part, supplier = self.orders(1)[0], self.customer(), self.part(), self.some(SUPPLIERS, 1)[0]
        self.next_key += 1
        new = self.next_key
        return [
            update("orders", f"o_orderkey = {new}", f"o_orderkey = {order}"),
            update("lineitem", f"l_orderkey = {new}", f"l_orderkey = {order}"),
            update("customer", f"c_custkey = {new}", f"c_custkey = {customer}"),
            update("part", f"p_partkey = {new}", f"p_partkey = {part}"),
            update("partsupp", f"ps_partkey = {new}", f"ps_partkey = {part}"),
            update("supplier", f"s_suppkey = {new}", f"s_suppkey = {supplier}"),
            # Keys that two rows exchange: each is there before and after, and is another row.
            update("customer", "c_custkey = 2001 - c_custkey", "c_custkey BETWEEN 1000 AND 1001"),
        ]

    # ------------------------------------------------------------ rows come and go

    def partners_go(self) -> Cycle:
        customer, part, supplier = self.customer(), self.part(), self.some(SUPPLIERS, 1)[0]
        return [
            delete("customer", f"c_custkey = {customer}"),
            delete("orders", f"o_custkey = {customer}"),
            delete("part", f"p_partkey = {part}"),
            delete("partsupp", f"ps_partkey = {part}"),
            delete("lineitem", f"l_partkey = {part}"),
            delete("supplier", f"s_suppkey = {supplier}"),
        ]

    def rows_come_back(self) -> Cycle:
        """As they were: some that went in this very cycle, some that went long ago."""
        now = [key for key in self.came if key not in self.gone][-5:]
        known = [*now, *self.gone]
        self.gone.clear()
        return [
            delete("orders", one_of("o_orderkey", now)),
            delete("lineitem", one_of("l_orderkey", now)),
            insert("orders", [self.came[key][0] for key in known]),
            insert("lineitem", [line for key in known for line in self.came[key][1]]),
        ]

    def rows_come_twice(self) -> Cycle:
        return [
            duplicate("lineitem", self.some_lines(3)),
            duplicate("orders", self.some_orders(3)),
            duplicate("customer", one_of("c_custkey", self.customers(3))),
            duplicate("partsupp", one_of("ps_partkey", self.parts(2))),
            duplicate("supplier", one_of("s_suppkey", self.some(SUPPLIERS, 1))),
            duplicate("part", self.some_parts(2)),
        ]

    def values_get_lost(self) -> Cycle:
        return [
            update("lineitem", "l_quantity = NULL, l_discount = NULL", self.some_lines(2)),
            update("lineitem", "l_partkey = NULL, l_receiptdate = NULL", self.some_lines(2)),
            update("lineitem", "l_returnflag = NULL, l_shipmode = NULL, l_suppkey = NULL", self.some_lines(2)),
            update("orders", "o_custkey = NULL", self.some_orders(2)),
            update("orders", "o_orderdate = NULL, o_orderpriority = NULL, o_comment = NULL", self.some_orders(2)),
            update("customer", "c_acctbal = NULL, c_nationkey = NULL", one_of("c_custkey", self.customers(2))),
            update("customer", "c_phone = NULL, c_mktsegment = NULL", one_of("c_custkey", self.customers(2))),
            update("part", "p_type = NULL, p_size = NULL", self.some_parts(2)),
            update("partsupp", "ps_suppkey = NULL, ps_supplycost = NULL", one_of("ps_partkey", self.parts(1))),
            update("supplier", "s_comment = NULL, s_nationkey = NULL", one_of("s_suppkey", self.some(SUPPLIERS, 1))),
        ]

    def lost_values_are_found(self) -> Cycle:
        return [
            update("lineitem", "l_quantity = 24, l_discount = 0.05", "l_quantity IS NULL"),
            update("lineitem", f"l_partkey = {self.part()}", "l_partkey IS NULL"),
            update("orders", f"o_custkey = {self.customer()}", "o_custkey IS NULL"),
            update("partsupp", "ps_suppkey = 1, ps_supplycost = 1.00", "ps_suppkey IS NULL"),
            update("supplier", f"s_suppkey = {self.some(SUPPLIERS, 1)[0]}", "s_suppkey IS NULL"),
            update("customer", "c_acctbal = 0.00, c_nationkey = 7", "c_acctbal IS NULL"),
        ]

    def a_key_that_is_null(self) -> Cycle:
        """One such row is what NOT IN stumbles over; it has a key again when lost values are found."""
        key = self.some(SUPPLIERS, 1)
        return [update("supplier", "s_suppkey = NULL, s_comment = 'Customer Complaints'", one_of("s_suppkey", key))]

    def nothing_in_the_end(self) -> Cycle:
        keys, few = one_of("o_orderkey", self.orders(5)), one_of("c_custkey", self.customers(5))
        return [
            update("orders", "o_totalprice = o_totalprice + 5", keys),
            update("orders", "o_totalprice = o_totalprice - 5", keys),
            update("customer", "c_acctbal = c_acctbal", few),
        ]

    # ------------------------------------------------------------ who is meant

    def amount(self, limit: int) -> str:
        return f"{self.random.randrange(100 * limit) / 100:.2f}"

    def some(self, of: int, count: int) -> list[int]:
        """Half of the time from a few that change again and again: what changed meets what else changed."""
        few = max(of // 50, 10)
        return self.random.sample(range(1, 1 + self.random.choice((few, of))), count)

    def orders(self, count: int) -> list[int]:
        """Of each 32 keys the generator uses the first eight."""
        return [(number - 1) // 8 * 32 + (number - 1) % 8 + 1 for number in self.some(ORDERS, count)]

    def customers(self, count: int) -> list[int]:
        return self.some(CUSTOMERS, count)

    def customer(self) -> int:
        return self.customers(1)[0]

    def parts(self, count: int) -> list[int]:
        return self.some(PARTS, count)

    def part(self) -> int:
        return self.parts(1)[0]

    def some_lines(self, orders: int) -> str:
        return f"l_linenumber < 3 AND {one_of('l_orderkey', self.orders(orders))}"

    def some_orders(self, count: int) -> str:
        return one_of("o_orderkey", self.orders(count))

    def some_parts(self, count: int) -> str:
        return one_of("p_partkey", self.parts(count))


def _supplier_of(part: int, which: int) -> int:
    """One of the four suppliers of a part, as the standard has it."""
    return (part + which * (SUPPLIERS // 4 + (part - 1) // SUPPLIERS)) % SUPPLIERS + 1


#: one after the other, and two more in each cycle by chance
KINDS: tuple[Callable[[Changes], list[Statement]], ...] = (
    Changes.quantities,
    Changes.join_keys,
    Changes.segments,
    Changes.values_get_lost,
    Changes.partners_go,
    Changes.brands,
    Changes.rows_come_back,
    Changes.a_key_that_is_null,
    Changes.lost_values_are_found,
    Changes.suppliers,
    Changes.primary_keys,
    Changes.rows_come_twice,
    Changes.states,
    Changes.prices,
    Changes.nations,
    Changes.nothing_in_the_end,
)


def cycles(seed: int = 0) -> Cycles:
    """Without end."""
    changes = Changes(random.Random(seed))
    number = 0
    while True:
        yield changes.cycle(number)
        number += 1
