SELECT
  SUM(cs_ext_discount_amt) AS excess_discount_amount
FROM catalog_sales, item, date_dim
WHERE
  i_manufact_id BETWEEN 140 AND 190
  AND i_item_sk = cs_item_sk
  AND d_date BETWEEN '2000-01-27' AND (CAST('2000-01-27' AS DATE) + INTERVAL 90 DAYS)
  AND d_date_sk = cs_sold_date_sk
  AND cs_ext_discount_amt > (
    SELECT
      1.3 * AVG(cs_ext_discount_amt)
    FROM catalog_sales, date_dim
    WHERE
      cs_item_sk = i_item_sk
      AND d_date BETWEEN '2000-01-27' AND (CAST('2000-01-27' AS DATE) + INTERVAL 90 DAYS)
      AND d_date_sk = cs_sold_date_sk
  )
LIMIT 100
