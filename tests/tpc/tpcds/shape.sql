-- What the generator makes at its smallest scale, made fit for a test: dimensions that come out with a single row get
-- more, those that are larger than what the facts can refer to are cut, and customers are so few that the same one buys
-- twice, returns, and buys elsewhere. Without it, half of the queries give no row at all.

DELETE FROM date_dim WHERE d_year NOT BETWEEN 1998 AND 2003;
DELETE FROM time_dim WHERE t_second <> 0;
DELETE FROM catalog_page WHERE cp_catalog_page_sk > 120;
DELETE FROM customer WHERE c_customer_sk > 60;

-- Six stores in three states; two of them in one place.
INSERT INTO store
SELECT * EXCLUDE (n) REPLACE (
    n AS s_store_sk, 'AAAAAAAA' || chr((64 + n)::INTEGER) || 'AAAAAAA' AS s_store_id,
    ['ought', 'able', 'pri', 'ese', 'anti', 'ese'][n] AS s_store_name, n AS s_market_id,
    200 + 15 * n AS s_number_employees, n % 2 + 1 AS s_company_id,
    ['Midway', 'Fairview', 'Midway', 'Oak Grove', 'Fairview', 'Midway'][n] AS s_city,
    ['Williamson County', 'Ziebach County', 'Williamson County', 'Walker County', 'Ziebach County',
     'Williamson County'][n] AS s_county,
    ['TN', 'SD', 'TN', 'AL', 'SD', 'TN'][n] AS s_state,
    ['31904', '35709', '31904', '36098', '35709', '38721'][n] AS s_zip,
    [-5, -6, -5, -6, -6, -5][n] AS s_gmt_offset)
FROM store, range(2, 7) AS numbers(n);

INSERT INTO warehouse
SELECT * EXCLUDE (n) REPLACE (
    n AS w_warehouse_sk, 'AAAAAAAA' || chr((64 + n)::INTEGER) || 'AAAAAAA' AS w_warehouse_id,
    ['Conventional childr', 'Important issues liv', 'Doors canno', NULL][n] AS w_warehouse_name,
    [977787, 138504, 294242, 621234][n] AS w_warehouse_sq_ft, ['TN', 'SD', 'AL', 'TN'][n] AS w_state)
FROM warehouse, range(2, 5) AS numbers(n);

INSERT INTO web_site
SELECT * EXCLUDE (n) REPLACE (
    n AS web_site_sk, 'AAAAAAAA' || chr((64 + n)::INTEGER) || 'AAAAAAA' AS web_site_id, 'site_' || n // 2 AS web_name,
    ['cally', 'pri', 'able', 'pri'][n] AS web_company_name)
FROM web_site, range(2, 5) AS numbers(n);

INSERT INTO web_page
SELECT * EXCLUDE (n) REPLACE (
    n AS wp_web_page_sk, 'AAAAAAAA' || chr((64 + n)::INTEGER) || 'AAAAAAA' AS wp_web_page_id,
    [2531, 5100, 5198, 6800][n] AS wp_char_count)
FROM web_page, range(2, 5) AS numbers(n);

INSERT INTO call_center
SELECT * EXCLUDE (n) REPLACE (
    n AS cc_call_center_sk, 'AAAAAAAA' || chr((64 + n)::INTEGER) || 'AAAAAAA' AS cc_call_center_id,
    ['NY Metro', 'Mid Atlantic', 'North Midwest'][n] AS cc_name,
    ['Bob Belcher', 'Felipe Perkins', 'Mark Hightower'][n] AS cc_manager)
FROM call_center, range(2, 4) AS numbers(n);

INSERT INTO reason
SELECT n, 'AAAAAAAA' || chr((64 + n)::INTEGER) || 'AAAAAAA',
    ['Package was damaged', 'reason 28', 'Did not like the color', 'Wrong size'][n]
FROM range(2, 5) AS numbers(n);

INSERT INTO promotion
SELECT * EXCLUDE (n) REPLACE (
    n AS p_promo_sk, 'AAAAAAAA' || chr((64 + n)::INTEGER) || 'AAAAAAA' AS p_promo_id, 'N' AS p_channel_dmail,
    CASE WHEN n > 4 THEN 'Y' ELSE 'N' END AS p_channel_tv, 'Y' AS p_channel_email, 'Y' AS p_channel_event)
FROM promotion, range(4, 7) AS numbers(n) WHERE p_promo_sk = 1;

-- A few states, counties and cities, so that people live where stores are, and where queries look for them.
UPDATE customer_address SET
    ca_zip = ['31904', '35709', '36098', '85669', ca_zip][1 + ca_address_sk % 5],
    ca_state = ['TN', 'SD', 'AL', 'GA', 'TX', 'OH', 'KY', 'VA', 'IL', ca_state][1 + ca_address_sk % 10],
    ca_gmt_offset = [-5, -6, -7, ca_gmt_offset][1 + ca_address_sk % 4],
    ca_city = ['Midway', 'Fairview', 'Edgewood', ca_city][1 + ca_address_sk % 4],
    ca_county = ['Williamson County', 'Ziebach County', 'Walker County', 'Rush County', 'Toole County', 'Rush County',
                 'Williamson County', 'Toole County', 'Jefferson County', ca_county][1 + ca_address_sk % 10];

-- Of each demographic that queries look for there are some.
DELETE FROM customer_demographics WHERE cd_demo_sk > 1400;
UPDATE customer SET
    c_current_addr_sk = 1 + c_current_addr_sk % 60, c_current_cdemo_sk = 1 + c_current_cdemo_sk % 1400,
    c_birth_month = 1 + c_customer_sk % 3, c_birth_year = 1966 + c_customer_sk % 4;
UPDATE customer SET c_current_cdemo_sk = (
    SELECT min(cd_demo_sk) FROM customer_demographics
    WHERE cd_marital_status = 'M' AND cd_education_status = 'Unknown')
WHERE c_customer_sk % 4 = 1;
UPDATE customer SET c_current_hdemo_sk = (
    SELECT max(hd_demo_sk) FROM household_demographics WHERE hd_buy_potential = 'Unknown' AND hd_income_band_sk = 5)
WHERE c_customer_sk % 2 = 1;
UPDATE item SET i_color = 'powder', i_units = 'Ounce', i_size = 'medium' WHERE i_category = 'Women' AND i_item_sk % 4 = 0;
UPDATE item SET i_color = 'light', i_units = 'Box', i_size = 'extra large' WHERE i_category = 'Men' AND i_item_sk % 4 = 1;

-- Half of what was sold, on every ninth day, to few customers: the same one buys the same elsewhere, and on one day.
DELETE FROM store_sales WHERE ss_ticket_number % 2 = 0;
DELETE FROM store_returns WHERE sr_ticket_number % 2 = 0;
DELETE FROM catalog_sales WHERE cs_order_number % 2 = 0;
DELETE FROM catalog_returns WHERE cr_order_number % 2 = 0;
DELETE FROM inventory WHERE inv_item_sk % 2 = 0;
UPDATE store_sales SET
    ss_sold_date_sk = ss_sold_date_sk // 9 * 9, ss_customer_sk = 1 + (ss_customer_sk - 1) % 60,
    ss_cdemo_sk = 1 + ss_cdemo_sk % 1400, ss_store_sk = 1 + ss_ticket_number % 7 % 6,
    ss_promo_sk = 1 + (ss_promo_sk + ss_ticket_number) % 6, ss_sold_time_sk = ss_sold_time_sk // 60 * 60;
UPDATE store_returns SET
    sr_customer_sk = 1 + (sr_customer_sk - 1) % 60, sr_cdemo_sk = 1 + sr_cdemo_sk % 1400,
    sr_store_sk = 1 + sr_ticket_number % 7 % 6, sr_reason_sk = 1 + (sr_item_sk + sr_ticket_number) % 4;
UPDATE catalog_sales SET
    cs_sold_date_sk = cs_sold_date_sk // 9 * 9, cs_bill_customer_sk = 1 + (cs_bill_customer_sk - 1) % 60,
    cs_ship_customer_sk = 1 + (cs_ship_customer_sk - 1) % 60, cs_bill_cdemo_sk = 1 + cs_bill_cdemo_sk % 1400,
    cs_catalog_page_sk = 1 + cs_catalog_page_sk % 120, cs_call_center_sk = 1 + cs_order_number % 3,
    cs_warehouse_sk = 1 + (cs_order_number + cs_item_sk) % 4, cs_promo_sk = 1 + cs_order_number % 6,
    cs_sold_time_sk = cs_sold_time_sk // 60 * 60;
UPDATE catalog_returns SET
    cr_refunded_customer_sk = 1 + (cr_refunded_customer_sk - 1) % 60,
    cr_returning_customer_sk = 1 + (cr_returning_customer_sk - 1) % 60,
    cr_catalog_page_sk = 1 + cr_catalog_page_sk % 120, cr_call_center_sk = 1 + cr_order_number % 3,
    cr_warehouse_sk = 1 + (cr_order_number + cr_item_sk) % 4, cr_reason_sk = 1 + cr_order_number % 4;
UPDATE web_sales SET
    ws_sold_date_sk = ws_sold_date_sk // 9 * 9, ws_bill_customer_sk = 1 + (ws_bill_customer_sk - 1) % 60,
    ws_ship_customer_sk = 1 + (ws_ship_customer_sk - 1) % 60, ws_bill_cdemo_sk = 1 + ws_bill_cdemo_sk % 1400,
    ws_web_page_sk = 1 + ws_order_number % 4, ws_web_site_sk = 1 + ws_order_number % 4,
    ws_warehouse_sk = 1 + (ws_order_number + ws_item_sk) % 4, ws_promo_sk = 1 + ws_order_number % 6,
    ws_sold_time_sk = ws_sold_time_sk // 60 * 60;
UPDATE web_returns SET
    wr_refunded_customer_sk = 1 + (wr_refunded_customer_sk - 1) % 60,
    wr_returning_customer_sk = 1 + (wr_returning_customer_sk - 1) % 60,
    wr_refunded_cdemo_sk = 1 + wr_refunded_cdemo_sk % 70, wr_returning_cdemo_sk = 1 + wr_refunded_cdemo_sk % 70,
    wr_web_page_sk = 1 + wr_order_number % 4, wr_reason_sk = 1 + wr_order_number % 4;

-- Some items are in stock by fits and starts.
UPDATE inventory SET inv_warehouse_sk = 1 + inv_item_sk % 4;
UPDATE inventory SET inv_quantity_on_hand = CASE WHEN inv_date_sk % 4 = 0 THEN 5000 ELSE 3 END
WHERE inv_item_sk % 5 = 0;

-- Shares of what was sold divide by it, which is an error in Spark where it is nothing.
UPDATE store_sales SET ss_ext_sales_price = 0.01 WHERE ss_ext_sales_price = 0;
UPDATE catalog_sales SET cs_ext_sales_price = 0.01 WHERE cs_ext_sales_price = 0;
UPDATE web_sales SET ws_ext_sales_price = 0.01 WHERE ws_ext_sales_price = 0;
