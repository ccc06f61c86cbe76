"""The stream tables of the demo: what a shop wants to know at every moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    name: str
    schedule: str
    query: str

    @property
    def statement(self) -> str:
        return (
            f"CREATE STREAM TABLE IF NOT EXISTS {self.name} WITH (schedule = '{self.schedule}') AS {self.query.strip()}"
        )


DEFINITIONS = (
    Definition(
        "open_orders",
        "2s",
        """
SELECT order_id, customer_id, ordered_at, status, channel
FROM orders
WHERE status IN ('placed', 'packed')
""",
    ),
    Definition(
        "payments_by_method",
        "3s",
        """
SELECT method, status, COUNT(*) AS payments, SUM(amount) AS amount
FROM payments
GROUP BY method, status
""",
    ),
    Definition(
        "order_totals",
        "5s",
        """
SELECT order_id, COUNT(*) AS lines, SUM(quantity) AS pieces, SUM(quantity * unit_price) AS total
FROM order_items
GROUP BY order_id
""",
    ),
    Definition(
        "revenue_by_region",
        "5s",
        """
SELECT c.region, COUNT(*) AS lines, SUM(i.quantity * i.unit_price) AS revenue
FROM orders AS o
JOIN customers AS c ON c.customer_id = o.customer_id
JOIN order_items AS i ON i.order_id = o.order_id
WHERE o.status <> 'cancelled'
GROUP BY c.region
""",
    ),
    Definition(
        "sales_by_category",
        "10s",
        """
SELECT p.category, COUNT(*) AS lines, SUM(i.quantity) AS pieces, AVG(i.unit_price) AS mean_price
FROM order_items AS i
JOIN products AS p ON p.product_id = i.product_id
GROUP BY p.category
""",
    ),
    Definition(
        "customer_value",
        "15s",
        """
SELECT o.customer_id, COUNT(*) AS orders, SUM(t.total) AS value, AVG(t.total) AS mean_order
FROM orders AS o
JOIN order_totals AS t ON t.order_id = o.order_id
WHERE o.status <> 'cancelled'
GROUP BY o.customer_id
""",
    ),
    Definition(
        "unpaid_orders",
        "20s",
        """
SELECT o.order_id, o.customer_id, o.ordered_at, o.status
FROM orders AS o
LEFT JOIN payments AS p ON p.order_id = o.order_id
WHERE p.payment_id IS NULL AND o.status <> 'cancelled'
""",
    ),
    Definition(
        "top_products",
        "30s",
        """
SELECT product_id, SUM(quantity) AS pieces
FROM order_items
GROUP BY product_id
ORDER BY pieces DESC, product_id
LIMIT 10
""",
    ),
)
