"""What is known of functions: which give the same answer for the same arguments.

A function that is in none of the sets is treated as volatile: nothing is maintained differentially on a guess.
Names are as sqlglot normalises them, in lower case.
"""

from __future__ import annotations

from sqlglot import exp


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: a different answer each time
VOLATILE = _words("""
    input_file_block_length input_file_block_start input_file_name monotonically_increasing_id rand randn random
    randstr shuffle spark_partition_id uniform uuid
""")

#: the same answer throughout one statement, another one tomorrow
STABLE = _words("""
    curdate current_catalog current_database current_date current_schema current_time current_timestamp
    current_timezone current_user localtimestamp now session_user user version
""")

#: runs arbitrary code
FORBIDDEN = _words("""
    java_method reflect try_reflect
""")

#: the answer depends on the arguments alone
IMMUTABLE = _words("""
    abs acos acosh add_months and any array array_append array_compact array_contains array_distinct
    array_except array_intersect array_join array_max array_min array_position array_prepend array_remove
    array_repeat array_size array_sort array_to_string array_union arrays_overlap ascii asin asinh atan atan2
    atanh base64 between bin bit_count bit_get bit_length bitwise_not bracket bround btrim cardinality case cast
    cbrt ceil ceiling char char_length character_length chr coalesce concat concat_ws contains conv
    convert_timezone cos cosh cot crc32 csc date date_add date_diff date_format date_from_parts
    date_from_unix_date date_part date_str_to_date date_sub date_trunc datediff day day_of_month day_of_week
    day_of_year dayname dayofmonth dayofweek dayofyear decode degrees div dot e element_at elt encode ends_with
    endswith exp explode_split expm1 extract factorial find_in_set flatten floor format_number format_string
    from_json from_unixtime from_utc_timestamp generate_series get get_json_object getbit greatest hash hex hour
    hypot if ifnull ilike initcap instr is_nan is_null isnan isnotnull isnull json_array_length json_extract
    json_extract_scalar json_object_keys last_day lcase least left len length levenshtein like ln locate log
    log10 log1p log2 lower lpad ltrim make_date make_timestamp map map_concat map_contains_key map_entries
    map_from_arrays map_from_entries map_keys map_values md5 minute mod month monthname months_between
    named_struct nanvl negative next_day nullif nvl nvl2 octet_length or overlay parse_json pi pmod position
    positive pow power printf quarter radians regexp_count regexp_extract regexp_extract_all regexp_i_like
    regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad
    rtrim safe_divide sec second sentences sequence sha sha1 sha2 shiftleft shiftright sign signum sin sinh size
    slice sort_array soundex space split split_part sqrt star_map starts_with startswith str_position
    str_to_date str_to_map str_to_time str_to_unix string struct substr substring substring_index tan tanh
    time_str_to_time time_to_str time_to_unix time_unit timestamp_micros timestamp_millis timestamp_seconds
    timestamp_trunc timestampadd timestampdiff to_array to_binary to_char to_date to_days to_double to_json
    to_number to_timestamp to_unix_timestamp to_utc_timestamp translate trim trunc try_add try_cast try_divide
    try_multiply try_subtract ts_or_ds_add ts_or_ds_diff ts_or_ds_to_date ts_or_ds_to_timestamp ucase unbase64
    unhex unix_date unix_micros unix_millis unix_seconds unix_timestamp unix_to_time unix_to_time_str upper
    url_decode url_encode var_map week week_of_year weekday weekofyear width_bucket xor xxhash64 year zeroifnull
""")


def name_of(call: exp.Func) -> str:
    """The function's name in lower case, however it was written."""
    return (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()


def is_forbidden(name: str) -> bool:
    return name in FORBIDDEN


def volatility(name: str) -> str:
    """immutable, stable, volatile, or unknown (which is to be treated as volatile)."""
    if name in IMMUTABLE:
        return "immutable"
    if name in STABLE:
        return "stable"
    return "volatile" if name in VOLATILE else "unknown"
