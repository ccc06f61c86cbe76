"""Scalar functions whose answer depends on their arguments alone, by family.

Three families look as if they did not. Reading and writing times depends on the time zone of the session, numbers and
casts on ANSI mode, comparing on the collation of the type: settings that nobody may choose (`FIXED_CONF`) or that are
part of a plan's fingerprint. What fails (`raise_error`, a division by zero) fails again for the same arguments.
"""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FAMILIES: dict[str, tuple[str, ...]] = {
    "comparison and logic": words("""
        ! != < <= <=> <> = == > >= and between equal_null ilike in isnan isnotnull isnull like not or regexp
        regexp_like rlike
    """),
    "arithmetic": words("""
        % * + - / abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc
        degrees div e exp expm1 factorial floor hex hypot ln log log10 log1p log2 mod negative pi pmod positive pow
        power radians rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply
        try_subtract unhex width_bucket
    """),
    "bits": words("""
        & << >> >>> ^ | ~ bit_count bit_get bitmap_bit_position bitmap_bucket_number bitmap_count getbit shiftleft
        shiftright shiftrightunsigned
    """),
    "choices": words("""
        case coalesce greatest if ifnull least nanvl nullif nullifzero nvl nvl2 when zeroifnull
    """),
    "casts": words("""
        bigint binary boolean cast date decimal double float int smallint string time timestamp tinyint try_cast
    """),
    "text": words("""
        || ascii base64 bit_length btrim char char_length character_length chr collate collation concat concat_ws
        contains decode elt encode endswith find_in_set format_number format_string initcap instr is_valid_utf8 lcase
        left len length levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay
        position printf quote regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace
        regexp_substr repeat replace reverse right rpad rtrim sentences soundex space split split_part startswith
        substr substring substring_index to_binary to_char to_number to_varchar translate trim try_to_binary
        try_to_number try_validate_utf8 ucase unbase64 upper validate_utf8
    """),
    "dates and times": words("""
        add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
        dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp
        hour last_day make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
        make_timestamp_ntz make_ym_interval minute month monthname months_between next_day quarter second time_bucket
        time_diff time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds
        time_trunc timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_time
        to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_interval
        try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp
        unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear window_time year
    """),
    "arrays": words("""
        aggregate array array_append array_compact array_contains array_distinct array_except array_insert
        array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat
        array_size array_sort array_union arrays_overlap arrays_zip cardinality element_at exists filter flatten
        forall get reduce sequence size slice sort_array transform try_element_at zip_with
    """),
    "maps and structs": words("""
        map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
        map_zip_with named_struct str_to_map struct transform_keys transform_values
    """),
    "hashes and secrets": words("""
        aes_decrypt crc32 hash md5 sha sha1 sha2 try_aes_decrypt xxhash64
    """),
    # what has to be known of a type, a schema or a format stands in a literal, so it is part of the query
    "formats": words("""
        from_avro from_csv from_json from_xml get_json_object json_array_length json_object_keys parse_url
        schema_of_avro schema_of_csv schema_of_json schema_of_xml to_avro to_csv to_json to_xml try_parse_url
        try_url_decode typeof url_decode url_encode xpath xpath_boolean xpath_double xpath_float xpath_int
        xpath_long xpath_number xpath_short xpath_string
    """),
    "variants": words("""
        is_valid_variant is_variant_null parse_json schema_of_variant to_variant_object try_parse_json
        try_variant_get variant_get
    """),
    "vectors": words("""
        vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize
    """),
    "places": words("st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid"),
    # two sketches put together give the same third one each time; not so those of KLL, see `changing`
    "sketches": words("""
        approx_top_k_estimate hll_sketch_estimate hll_union kll_sketch_get_n_bigint kll_sketch_get_n_double
        kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
        kll_sketch_get_rank_float kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
        theta_difference theta_intersection theta_sketch_estimate theta_union tuple_difference_double
        tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
        tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer tuple_sketch_estimate_double tuple_sketch_estimate_integer
        tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
        tuple_sketch_theta_integer tuple_union_double tuple_union_integer tuple_union_theta_double
        tuple_union_theta_integer
    """),
    "refusals": words("assert_true raise_error"),
}
