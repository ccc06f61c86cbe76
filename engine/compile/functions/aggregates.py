"""What a compiler has to know of each aggregate function, measured on Spark 4.2 (tests/spark/test_functions.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Order(StrEnum):
    """Does the order matter in which rows reach the aggregate? Spark promises none."""

    #: the same multiset of rows gives the same value, to the last bit
    NEVER = "never"
    #: sums that are rounded at each step if they are of FLOAT or DOUBLE; exact for integers, decimals and intervals
    FLOATS = "floats"
    #: computes in DOUBLE whatever the type of the argument, so the last digits depend on the order
    DOUBLES = "doubles"
    #: shows an order, takes what comes first, or keeps a sample: other rows or other bytes in another order
    ROWS = "rows"


#: in place of a value over no rows
A_SKETCH = "a sketch of nothing, as bytes"
AN_ERROR = "an error"
#: in place of a value over NULLs only: they are counted like any value
COUNTS_NULLS = "how many NULLs there are"


@dataclass(frozen=True)
class AggregateFunction:
    name: str
    #: what it is another name of: `mean` is avg
    same_as: str
    order: Order = Order.NEVER
    #: several rows may have equal claims, and which one wins is not said: mode, max_by, any_value
    ties: bool = False
    #: does it matter how often a row is there? If not, DISTINCT changes nothing (min, bool_and)
    duplicates_matter: bool = True
    #: rows whose (first) argument is NULL are as good as not there
    skips_nulls: bool = True
    #: over no rows, as SQL
    empty: str = "NULL"
    #: over rows whose arguments are all NULL, as SQL
    all_null: str = "NULL"


def _made(names: str, template: AggregateFunction) -> list[AggregateFunction]:
    """Each line: a name, and behind it other names of the same function."""
    lines = [line.split() for line in names.strip().splitlines()]
    return [replace(template, name=name, same_as=line[0]) for line in lines for name in line]


_PLAIN = AggregateFunction("", "")
_SKETCH = replace(_PLAIN, empty=A_SKETCH, all_null=A_SKETCH)

_TABLE = (
    # counted or added exactly
    *_made("count\ncount_if\nregr_count", replace(_PLAIN, empty="0", all_null="0")),
    # how often a value occurs says nothing about how many there are; Spark's own registers, merged by max
    *_made("approx_count_distinct", replace(_PLAIN, duplicates_matter=False, empty="0", all_null="0")),
    # over BIGINT and DECIMAL the order decides whether a sum overflows on its way: an error, or NULL for try_sum
    *_made("sum\ntry_sum", replace(_PLAIN, order=Order.FLOATS)),
    # the least and the greatest are one value, whoever brings it; under a collation `a` and `A` are the same value
    *_made("max\nmin", replace(_PLAIN, duplicates_matter=False)),
    *_made("bool_and every\nbool_or any some\nbit_and\nbit_or", replace(_PLAIN, duplicates_matter=False)),
    *_made("bit_xor", _PLAIN),
    # sorted inside, or counted by value
    *_made("median\npercentile\npercentile_cont\npercentile_disc", _PLAIN),
    # exact over decimals and intervals; over integers as long as the sum stays below 2^53
    *_made("avg mean\ntry_avg", replace(_PLAIN, order=Order.DOUBLES)),
    *_made(
        """
        corr
        covar_pop
        covar_samp
        kurtosis
        regr_avgx
        regr_avgy
        regr_intercept
        regr_r2
        regr_slope
        regr_sxx
        regr_sxy
        regr_syy
        skewness
        stddev_pop
        stddev_samp std stddev
        var_pop
        var_samp variance
        vector_avg
        vector_sum
        """,
        replace(_PLAIN, order=Order.DOUBLES),
    ),
    # whoever comes first or last, NULL or not (IGNORE NULLS leaves out those)
    *_made(
        "any_value\nfirst first_value\nlast last_value",
        replace(_PLAIN, order=Order.ROWS, ties=True, duplicates_matter=False, skips_nulls=False),
    ),
    # rows with a NULL to order by do not count, while a NULL that wins is the answer
    *_made("max_by\nmin_by", replace(_PLAIN, order=Order.ROWS, ties=True, duplicates_matter=False, skips_nulls=False)),
    # mode(x, true) and mode() WITHIN GROUP (ORDER BY x) take the least: no ties then
    *_made("mode", replace(_PLAIN, order=Order.ROWS, ties=True)),
    *_made("collect_list array_agg", replace(_PLAIN, order=Order.ROWS, empty="array()", all_null="array()")),
    # the set is the same, the order of its elements is not where hashes are equal: canonical under array_sort
    *_made(
        "collect_set",
        replace(_PLAIN, order=Order.ROWS, duplicates_matter=False, empty="array()", all_null="array()"),
    ),
    # WITHIN GROUP (ORDER BY the same value) fixes the order
    *_made("listagg string_agg", replace(_PLAIN, order=Order.ROWS)),
    *_made("approx_percentile percentile_approx\nhistogram_numeric", replace(_PLAIN, order=Order.ROWS)),
    # the types that occur, merged
    *_made("schema_of_variant_agg", replace(_PLAIN, duplicates_matter=False, empty="'VOID'", all_null="'VOID'")),
    # a fixed number of counters; NULL is counted like a value
    *_made(
        "approx_top_k",
        replace(
            _PLAIN,
            order=Order.ROWS,
            skips_nulls=False,
            empty="array()",
            all_null=COUNTS_NULLS,
        ),
    ),
    *_made("approx_top_k_accumulate", replace(_SKETCH, order=Order.ROWS, skips_nulls=False)),
    # a failure inside Spark, both times
    *_made(
        "approx_top_k_combine",
        replace(_PLAIN, order=Order.ROWS, skips_nulls=False, empty=AN_ERROR, all_null=AN_ERROR),
    ),
    # counters that are added, by a hash with a seed of its own
    *_made("count_min_sketch", _SKETCH),
    # bitmaps, merged bit by bit; of nothing, all of 4096 bytes are zeros, or ones for AND
    *_made("bitmap_construct_agg\nbitmap_or_agg", replace(_SKETCH, duplicates_matter=False)),
    *_made("bitmap_and_agg", replace(_SKETCH, duplicates_matter=False)),
    # a sketch lists its entries as they came, and HyperLogLog's estimate of one stream knows its history
    *_made("hll_sketch_agg\nhll_union_agg", replace(_SKETCH, order=Order.ROWS, duplicates_matter=False)),
    # the hashes below a bound, in order
    *_made("theta_sketch_agg\ntheta_union_agg", replace(_SKETCH, duplicates_matter=False)),
    *_made("theta_intersection_agg", replace(_PLAIN, duplicates_matter=False, empty=AN_ERROR, all_null=AN_ERROR)),
    # the same with a summary for each, which lists them as they came
    *_made(
        "tuple_sketch_agg_double\ntuple_sketch_agg_integer\ntuple_union_agg_double\ntuple_union_agg_integer",
        replace(_SKETCH, order=Order.ROWS),
    ),
    *_made(
        "tuple_intersection_agg_double\ntuple_intersection_agg_integer",
        replace(_PLAIN, order=Order.ROWS, empty=AN_ERROR, all_null=AN_ERROR),
    ),
    # volatile: the same rows in the same order give another sketch
    *_made(
        """
        kll_merge_agg_bigint
        kll_merge_agg_double
        kll_merge_agg_float
        kll_sketch_agg_bigint
        kll_sketch_agg_double
        kll_sketch_agg_float
        """,
        replace(_SKETCH, order=Order.ROWS),
    ),
    # a metric view's own; Spark replaces it before anything is computed
    *_made("measure", replace(_PLAIN, order=Order.ROWS, empty=AN_ERROR, all_null=AN_ERROR)),
)

AGGREGATES: dict[str, AggregateFunction] = {each.name: each for each in _TABLE}
