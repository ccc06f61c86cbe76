"""Spark finds that what the compiler understood means the same as the text, for all that people write every day.

A query that is not trusted is recomputed on each refresh: right, but slow, and for no reason of its own.
"""

from __future__ import annotations

import pytest

from engine.compile.parse import parse
from engine.lake.session import SparkHost

pytestmark = pytest.mark.spark

EXPRESSIONS = """
nvl(k, 1) ; ifnull(k, 1) ; nvl2(k, 1, 2) ; if(k > 1, 1, 2) ; k <> 1 ; k != 1 ; k == 1 ; s || 'x' ; concat(s, 'x')
concat_ws(',', s, s) ; substr(s, 1, 2) ; substring(s, 2) ; left(s, 2) ; right(s, 2) ; trim(s) ; ltrim(s) ; length(s)
char_length(s) ; k::bigint ; cast(k as string) ; try_cast(s as int) ; k div 2 ; k % 2 ; mod(k, 2) ; pmod(k, 2) ; -k
abs(k) ; round(v, 1) ; floor(v) ; ceil(v) ; power(k, 2) ; sqrt(k) ; year(d) ; month(d) ; day(d) ; trunc(d, 'MM')
date_trunc('month', ts) ; date_add(d, 1) ; date_sub(d, 1) ; d + interval 1 day ; d + interval '1' month ; datediff(d, d)
to_date(s) ; to_date(s, 'yyyy-MM-dd') ; to_timestamp(s) ; date_format(ts, 'yyyy') ; extract(year from d) ; hour(ts)
s like 'a%' ; s not like 'a%' ; s rlike 'a' ; s in ('a', 'b') ; s not in ('a') ; k between 1 and 2
k not between 1 and 2 ; k is null ; k is not null ; not (k is null) ; k <=> 1 ; coalesce(k, 1, 2) ; nullif(k, 1)
greatest(k, 1) ; least(k, 1) ; case k when 1 then 'a' else 'b' end ; case when k = 1 then 'a' end ; 1.5 ; 1e3 ; 1.5D
100L ; 'it''s' ; "dq" ; true ; k = 1 and s = 'a' or v > 1 ; upper(s) ; ucase(s) ; lower(s) ; replace(s, 'a', 'b')
split(s, ',')[0] ; regexp_replace(s, 'a', 'b') ; regexp_extract(s, '(a)', 1) ; instr(s, 'a') ; locate('a', s)
lpad(s, 5, ' ') ; md5(s) ; sha2(s, 256) ; hash(k) ; xxhash64(k) ; get_json_object(s, '$.a') ; array(k, k)[0]
named_struct('a', k).a ; map('a', k)['a'] ; size(array(k)) ; element_at(array(k), 1) ; date '2020-01-01'
timestamp '2020-01-01 00:00:00' ; unix_timestamp(ts) ; cast(v as decimal(12, 4)) ; v * 1.1 ; v / 2 ; sign(k) ; ln(f)
isnull(k) ; isnotnull(k) ; isnan(f) ; dayofweek(d) ; weekofyear(d) ; quarter(d) ; last_day(d) ; add_months(d, 1)
months_between(d, d) ; bigint(k) ; string(k) ; k & 1 ; initcap(s) ; reverse(s) ; repeat(s, 2) ; equal_null(k, 1)
"""

QUERIES = (
    "SELECT k, count(*) AS c FROM t GROUP BY ALL",
    "SELECT k, count(1) AS c FROM t GROUP BY k HAVING c > 1",
    "SELECT k AS a, sum(v) AS s FROM t GROUP BY a ORDER BY s DESC",
    "SELECT * FROM t a JOIN t b USING (k)",
    "SELECT a.* FROM t a, t b, t c WHERE a.k = b.k AND b.k = c.k",
    "SELECT a.k FROM t a CROSS JOIN t b, t c JOIN t d ON c.k = d.k, (SELECT k FROM t) e",
    "WITH a AS (SELECT k FROM t), b AS (SELECT k FROM a) SELECT a.k FROM a JOIN b ON a.k = b.k JOIN b c ON c.k = b.k",
    "WITH a AS (SELECT k FROM t) SELECT * FROM (WITH a AS (SELECT s FROM t) SELECT s FROM a) x, a",
    "SELECT t.k FROM t JOIN t u ON t.k = u.k AND u.s IS NOT NULL",
    "SELECT avg(v) AS a, count(DISTINCT k) AS c, max(d) AS m, stddev(f) AS sd FROM t",
    "SELECT `k`, T.S FROM t AS `T`",
    "SELECT k FROM t WHERE k IN (SELECT k FROM t u WHERE d > DATE '2020-01-01' AND ts < TIMESTAMP '2020-01-01')",
    "SELECT k FROM t WHERE d > (SELECT max(d) - INTERVAL 3 DAY FROM t u WHERE d < date '2020-01-01' + interval 1 year)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.k = t.k AND u.v > 1.5BD AND u.k < 2L AND u.f > 1e3D)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE CAST(u.k AS BIGINT) < CAST(2 AS BIGINT))",
    "SELECT k FROM t WHERE ts > TIMESTAMP '2020-01-01 00:00:00+02:00'",
    "SELECT a.k FROM t a JOIN (VALUES (1, 'x'), (2, 'y')) AS v(k, n) ON a.k = v.k",
    "SELECT listagg(s, ';') WITHIN GROUP (ORDER BY s) AS l, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS p FROM t",
    "SELECT max_by(s, k, 2) AS m FROM t",
    "SELECT listagg(s) AS l FROM t",
    "SELECT k FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT k, sum(v) OVER (PARTITION BY s ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS w FROM t",
    "SELECT s RLIKE 'a.*' AS r, s LIKE 'a!%' ESCAPE '!' AS l, s ILIKE ANY ('a%', 'b%') AS i FROM t",
    "SELECT named_struct('a', k).a AS x, struct(k, s).s AS y, map('a', k)['a'] AS z, array(k)[0] AS w FROM t",
    "SELECT transform(array(k, 1), x -> x + k) AS x, filter(array(k), x -> x > 1) AS y FROM t",
    "SELECT aggregate(array(k), 0, (a, x) -> a + x, a -> a * 2) AS x FROM t",
    "SELECT exists(array(k), x -> x > 1) AS e, forall(array(k), x -> x > 1) AS f FROM t WHERE EXISTS (SELECT 1 FROM t)",
    "SELECT from_json(s, 'a INT, b STRING').a AS x FROM t",
    "SELECT CASE s WHEN 'a' THEN 1 WHEN 'b' THEN 2 END AS c, IF(k > 1, s, 'y') AS i, DECODE(k, 1, 'a') AS e FROM t",
    "SELECT extract(YEAR FROM d) AS y, date_part('month', d) AS m, d - DATE '2020-01-01' AS n FROM t",
    "SELECT k, s FROM t LATERAL VIEW OUTER explode(array(k)) e AS x LATERAL VIEW posexplode(array(s)) AS p, y",
    "SELECT a.k, l.x FROM t a, LATERAL (SELECT max(b.v) AS x FROM t b WHERE b.k = a.k) l",
    "SELECT k FROM t GROUP BY k, s WITH ROLLUP",
    "SELECT k, s, grouping_id(k, s) AS g FROM t GROUP BY GROUPING SETS ((k, s), (k), ())",
    "SELECT k FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY s DESC NULLS LAST) = 1",
    "SELECT window(ts, '10 minutes').start AS w, count(*) AS c FROM t GROUP BY window(ts, '10 minutes')",
    "SELECT date_trunc('HOUR', ts) AS h, count_if(k > 1) AS c, max(v) FILTER (WHERE k > 2) AS m FROM t GROUP BY ALL",
    "SELECT DISTINCT ON_ FROM (SELECT k AS ON_ FROM t)",
    "FROM t SELECT k WHERE k > 1",
    "SELECT * EXCEPT (s, d) FROM t",
    "SELECT /*+ BROADCAST(u) */ t.k FROM t JOIN t u ON t.k = u.k",
    "SELECT t.k FROM t ANTI JOIN t u ON t.k = u.k",
    "SELECT k FROM t WHERE (k, s) IN (SELECT k, s FROM t u) AND k NOT IN (1, 2)",
    "SELECT interval '1' day + d AS x, INTERVAL '1-2' YEAR TO MONTH + d AS y FROM t",
    "SELECT CAST(ts AS DATE) x, s || 'b' y, -k z, k % 2 w, k DIV 2 q, NOT (k = 1) n, k <=> 1 e, k != 1 f FROM t",
    "SELECT first(s) IGNORE NULLS AS x, last(s, true) AS y, any_value(k) AS z FROM t",
    "FROM t |> WHERE k > 1 |> AGGREGATE sum(v) AS x, count(*) AS n GROUP BY s AS g |> WHERE n > 1 |> ORDER BY x",
    "FROM t |> AS a |> LEFT JOIN t b ON a.k = b.k |> SELECT a.k, b.s",
    "FROM t |> EXTEND k + 1 AS l |> SELECT l, sum(v) OVER (PARTITION BY l) AS w |> WHERE w > 1",
    "SELECT k, x FROM t a, LATERAL (SELECT a.v AS x UNION ALL SELECT a.k)",
    "SELECT percentile(k, array(0.1, 0.5)) OVER (PARTITION BY s) AS p,"
    " listagg(s, ',') WITHIN GROUP (ORDER BY k) OVER (PARTITION BY d) AS l FROM t",
)

#: Spark puts sides in order by numbers that it gives anew each time
TURNED_ROUND = """
WITH RECURSIVE r(n, m) AS (
    SELECT k, 0 FROM t UNION ALL SELECT t.k, m + 1 FROM r JOIN t ON n = t.k WHERE m < 3
), c AS (SELECT n, count(*) AS rows FROM r GROUP BY n) SELECT * FROM c WHERE rows > (SELECT avg(rows) FROM c)
"""

RECURSIVE = """
WITH RECURSIVE r(n, m) AS (
    SELECT k, 0 FROM t WHERE k <=> 1 UNION ALL SELECT nvl(t.k, 1) + 1, m + 1 FROM r JOIN t ON n = t.k WHERE m < 3
) SELECT n, string_agg(s, ',') AS l, count(*) AS c FROM r JOIN t u ON u.k = r.n WHERE n IS NOT NULL GROUP BY n
"""

DIFFERENT = (
    (RECURSIVE, RECURSIVE.replace("m + 1", "m + 2")),
    (RECURSIVE, RECURSIVE.replace("m < 3", "n < 3")),
    (RECURSIVE, RECURSIVE.replace("n = t.k", "n = t.k AND n IN (1, 1)")),
    (RECURSIVE, RECURSIVE.replace("count(*)", "count(1L)")),
    ("SELECT k FROM t WHERE k > 1", "SELECT k FROM t WHERE k >= 1"),
    ("SELECT k FROM t", "SELECT DISTINCT k FROM t"),
    ("SELECT t.k FROM t JOIN t u ON t.k = u.k", "SELECT t.k FROM t LEFT JOIN t u ON t.k = u.k"),
    ("SELECT 'its' AS s FROM t", "SELECT 'it''s' AS s FROM t"),
    ("WITH a AS (SELECT k FROM t) SELECT k FROM a", "WITH a AS (SELECT k FROM t WHERE k = 1) SELECT k FROM a"),
    ("FROM t |> WHERE k > 1 |> SELECT s", "WITH a AS (SELECT * FROM t WHERE k > 2) SELECT s FROM a"),
    ("FROM t |> WHERE k > 1 |> SELECT s", "WITH a AS (SELECT * FROM t WHERE k > 1) SELECT CAST(k AS STRING) FROM a"),
    (
        "WITH a AS (SELECT s, k FROM t) SELECT s FROM a",
        "WITH a AS (SELECT s, k FROM t) SELECT CAST(k AS STRING) FROM a",
    ),
    (
        "SELECT a.k FROM t a, LATERAL (SELECT a.v UNION ALL SELECT a.k)",
        "SELECT a.k FROM t a, LATERAL (SELECT a.v UNION SELECT a.k)",
    ),
    ("SELECT DATE '2020-01-01' AS d FROM t", "SELECT DATE '2020-01-02' AS d FROM t"),
)


@pytest.fixture(scope="module", autouse=True)
def table(spark_host: SparkHost) -> None:
    columns = {"k": "int", "s": "string", "v": "decimal(10,2)", "d": "date", "ts": "timestamp", "f": "double"}
    chosen = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in columns.items())
    spark_host.session().sql(f"SELECT {chosen}").createOrReplaceTempView("t")


def is_trusted(host: SparkHost, sql: str) -> bool:
    return host.same_semantics(sql, parse(sql).rendered())


def test_expressions(spark_host: SparkHost) -> None:
    expressions = [each.strip() for line in EXPRESSIONS.strip().splitlines() for each in line.split(" ; ")]
    together = ", ".join(f"{each} AS c{number}" for number, each in enumerate(expressions))
    if not is_trusted(spark_host, f"SELECT {together} FROM t"):
        alone = [each for each in expressions if not is_trusted(spark_host, f"SELECT {each} AS c FROM t")]
        pytest.fail(f"not trusted: {alone}")


@pytest.mark.parametrize("sql", [*QUERIES, RECURSIVE])
def test_query(sql: str, spark_host: SparkHost) -> None:
    assert is_trusted(spark_host, sql)


def test_what_is_trusted_once_is_trusted_always(spark_host: SparkHost) -> None:
    assert all(is_trusted(spark_host, TURNED_ROUND) for _ in range(12))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_is_not_trusted(one: str, other: str, spark_host: SparkHost) -> None:
    assert not spark_host.same_semantics(one, other)
