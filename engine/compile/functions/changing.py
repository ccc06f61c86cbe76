"""Functions that do not give the same answer each time, each with its reason, as people are told it."""

from __future__ import annotations

_CLOCK = "reads the clock"
_SESSION = "asks the session that happens to run it"
_RANDOM = "draws at random"
# with a seed too: each partition draws from a sequence of its own
_RANDOM_BY_PARTITION = "draws at random; also with a seed, each partition of the work has numbers of its own"
_PARTITION = "depends on how the work is cut into partitions"
_FILE = "tells of the files of a table, which any maintenance writes anew"
_SKETCH = "keeps a random sample of what it saw"
_DESCRIPTOR = "reads a descriptor file that may change"
_CODE = "runs code outside the query"

#: the same answer throughout one statement, another one tomorrow
STABLE: dict[str, str] = {
    "curdate": _CLOCK,
    "current_date": _CLOCK,
    "current_time": _CLOCK,
    "current_timestamp": _CLOCK,
    "localtimestamp": _CLOCK,
    "now": _CLOCK,
    "current_catalog": _SESSION,
    "current_database": _SESSION,
    "current_path": _SESSION,
    "current_schema": _SESSION,
    "current_timezone": _SESSION,
    "current_user": _SESSION,
    "session_user": _SESSION,
    "user": _SESSION,
    "version": "tells which Spark runs it",
}

#: a different answer each time, or one that nobody can foresee
VOLATILE: dict[str, str] = {
    "input_file_block_length": _FILE,
    "input_file_block_start": _FILE,
    "input_file_name": _FILE,
    "monotonically_increasing_id": _PARTITION,
    "spark_partition_id": _PARTITION,
    "rand": _RANDOM_BY_PARTITION,
    "randn": _RANDOM_BY_PARTITION,
    "random": _RANDOM_BY_PARTITION,
    "randstr": _RANDOM_BY_PARTITION,
    "shuffle": _RANDOM_BY_PARTITION,
    "uniform": _RANDOM_BY_PARTITION,
    "uuid": _RANDOM,
    # GCM and CBC draw an initialisation vector for each value; `refined` knows when they do not
    "aes_encrypt": "draws a random initialisation vector",
    "from_protobuf": _DESCRIPTOR,
    "to_protobuf": _DESCRIPTOR,
    # Spark calls them deterministic, yet the same rows in the same order give another sketch: measured
    "kll_sketch_merge_bigint": _SKETCH,
    "kll_sketch_merge_double": _SKETCH,
    "kll_sketch_merge_float": _SKETCH,
}

#: aggregates among them
VOLATILE_AGGREGATES: dict[str, str] = {
    "kll_merge_agg_bigint": _SKETCH,
    "kll_merge_agg_double": _SKETCH,
    "kll_merge_agg_float": _SKETCH,
    "kll_sketch_agg_bigint": _SKETCH,
    "kll_sketch_agg_double": _SKETCH,
    "kll_sketch_agg_float": _SKETCH,
}

#: never allowed, in no mode
FORBIDDEN: dict[str, str] = {
    "java_method": _CODE,
    "reflect": _CODE,
    "try_reflect": _CODE,
}

#: relations that are not the same each time
STABLE_TABLES: dict[str, str] = {
    "collations": "tells what this Spark knows",
    "sql_keywords": "tells what this Spark knows",
}
VOLATILE_TABLES: dict[str, str] = {"python_worker_logs": "tells what was logged so far"}

#: no function, but as random as one
TABLESAMPLE = "takes rows at random, or those that come first; also with a seed, by partition"
