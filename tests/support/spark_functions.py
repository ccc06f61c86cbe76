"""Which type Spark's functions give, where it does not depend on more than their name or first argument."""

from __future__ import annotations

from sqlglot import exp

from engine.compile.functions import name_of

_BY_TYPE = {
    "int": """
        array_position array_size ascii bit_count bit_length cardinality char_length character_length
        date_diff datediff day day_of_month day_of_week day_of_week_iso day_of_year dayofmonth dayofweek dayofyear
        dense_rank extract_year find_in_set hash hour instr length levenshtein locate map_size minute month ntile
        octet_length position quarter rank row_number second size str_position ts_or_ds_diff unicode unix_date week
        week_of_year weekday weekofyear year
    """,
    "bigint": """
        approx_count_distinct bitmap_count count count_if crc32 factorial grouping_id regr_count shiftrightunsigned
        str_to_unix time_to_unix timestampdiff timestamp_diff to_unix_timestamp ts_or_ds_to_unix unix_micros
        unix_millis unix_seconds unix_timestamp width_bucket xxhash64
    """,
    "tinyint": "grouping",
    "double": """
        acos acosh asin asinh atan atan2 atanh cbrt corr cos cosh cot covar_pop covar_samp csc cume_dist
        degrees e exp expm1 hypot kurtosis ln log log10 log1p log2 median months_between nanvl percent_rank percentile
        percentile_cont pi pow power quantile radians regr_intercept regr_r2 regr_slope regr_sxx
        regr_sxy regr_syy rint sec sign signum sin sinh skewness sqrt std stddev stddev_pop stddev_samp tan tanh
        try_to_double var_pop var_samp variance variance_pop variance_samp
    """,
    "array<string>": "regexp_extract_all regexp_split sentences split string_to_array",
    "boolean": """
        array_contains arrays_overlap bool_and bool_or contains ends_with endswith equal_null every exists is_nan
        isnan isnotnull isnull like logical_and logical_or regexp_like rlike some starts_with startswith
    """,
    "string": """
        array_join array_to_string
        base64 bin chr char concat_ws conv date_format decode dpipe elt format_number format_string from_unixtime
        get_json_object group_concat hex initcap json_extract_scalar lcase left listagg lower lpad ltrim md5 md5_digest
        overlay pad printf regexp_extract regexp_replace regexp_substr repeat replace reverse right rpad rtrim sha
        sha1 sha2 soundex space split_part string_agg stuff substr substring substring_index time_to_str to_char
        to_json translate trim typeof ucase unix_to_str upper url_decode url_encode
    """,
    "date": """
        add_months curdate current_date date date_add date_from_parts date_from_unix_date date_sub last_day make_date
        next_day to_date trunc ts_or_ds_add ts_or_ds_to_date
    """,
    "timestamp": """
        current_timestamp date_trunc from_utc_timestamp make_timestamp now str_to_time time_str_to_time timestamp
        timestamp_add timestampadd timestamp_micros timestamp_millis timestamp_seconds to_timestamp to_utc_timestamp
        ts_or_ds_to_timestamp
    """,
}

FIXED = {name: type_ for type_, names in _BY_TYPE.items() for name in names.split()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: the type of the first argument
SAME = _words("""
    any_value approx_quantile approx_percentile arg_max arg_min array_distinct array_sort bit_and bit_or bit_xor
    bitwise_and_agg bitwise_or_agg bitwise_xor_agg first first_value lag last last_value lead max max_by min min_by
    mode nth_value nullif percentile_approx percentile_disc shiftleft shiftright slice sort_array
""")

#: the widest of all arguments
ANY_OF = _words("coalesce greatest ifnull least nvl")


def function_name(tree: exp.Func) -> str:
    """As in `FIXED`: Spark's TRUNC of a date is DateTrunc to the parser, its DATE_TRUNC stays as it is written."""
    return "trunc" if isinstance(tree, exp.DateTrunc) else name_of(tree)
