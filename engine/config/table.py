"""The one table of settings: names, types, defaults, meanings and bounds.

Validation, the commented `trickle.toml` of a new workspace and the documentation all come from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def _setting(
    default: T,
    meaning: str,
    *,
    unit: str = "",
    choices: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
) -> T:
    metadata = {"meaning": meaning, "unit": unit, "choices": choices, "least": least, "most": most}
    made: T = field(default=default, metadata=metadata)
    return made


#: settings of Spark that nobody may choose: the answers depend on them, and so does every fingerprint
FIXED_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # what a text means to Spark's parser, which Trickle's own reads alike
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.groupByAliases": "true",
    # a `${…}` in a query is the query's own text
    "spark.sql.variable.substitute": "false",
    # a total is joined to what is stored of it, which is one row on either side
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Spark's own old form of timestamps: delta-rs reads those before 1677 and after 2262 as others, silently
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # days in the calendar of 1582: delta-rs and the bounds of files take them for days of ours
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}


@dataclass(frozen=True)
class WorkspaceSettings:
    name: str = _setting("", "On screen; empty: the name that it was made with, or its folder's.")


@dataclass(frozen=True)
class SparkSettings:
    master: str = _setting("local[*]", "Where Spark runs: local[*] or the master of any cluster.")
    driver_memory: str = _setting("2g", "Memory of the Spark driver, as Spark writes it.", unit="memory")
    shuffle_partitions: int = _setting(
        0, "Partitions of a shuffle; 0: as many as there are cores.", unit="partitions", least=0
    )
    java_home: str = _setting("", "The Java to use; empty: JAVA_HOME, the PATH, then the bundled one.")
    log_level: str = _setting(
        "ERROR",
        "What Spark writes to the workspace's logs.",
        choices=("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"),
    )
    conf: Mapping[str, str] = field(
        default_factory=dict,
        metadata={"meaning": "Any setting of Spark itself, passed on as it is written."},
    )


@dataclass(frozen=True)
class SourcesSettings:
    enable_cdf: str = _setting(
        "ask",
        "May Trickle switch the Change Data Feed on in a source that others own?",
        choices=("ask", "never", "always"),
    )
    poll_interval: str = _setting(
        "30s", "How often databases, and tables that Spark knows by a name, are looked at for changes.", unit="duration"
    )
    write_wait: str = _setting(
        "10m", "How long DML on a source waits for its turn, while other DML on it is under way.", unit="duration"
    )
    block_source_ddl: bool = _setting(
        True,
        "A used column is changed, or a source replaced: suspend the stream table? Otherwise it is rebuilt.",
    )
    history_warning: str = _setting(
        "1d", "Warn when what a stream table has yet to read may be cleaned away sooner than this.", unit="duration"
    )
    history_alarm: str = _setting("2h", "The same, from which on it is told as an error.", unit="duration")
    shared_changes_mb: int = _setting(
        32,
        "So much memory may hold changes that several stream tables have to read, so that one of them reads it.",
        unit="MB",
        least=0,
    )


@dataclass(frozen=True)
class RefreshSettings:
    default_schedule: str = _setting(
        "30s", "Schedule of a stream table that names none and has no consumers.", unit="duration"
    )
    min_schedule: str = _setting("1s", "Shorter schedules are refused.", unit="duration")
    max_concurrent_refreshes: int = _setting(4, "Refreshes that may run at once.", unit="refreshes", least=1)
    max_driver_delta_mb: int = _setting(64, "A larger change is never collected to the driver.", unit="MB", least=0)
    max_driver_delta_rows: int = _setting(
        200_000, "A change of more rows is never collected to the driver.", unit="rows", least=0
    )
    large_source_mb: int = _setting(
        8,
        "What reads more than the change of a source larger than this is computed in steps, each source once.",
        unit="MB",
        least=0,
    )
    lookup_mb: int = _setting(
        8192,
        "In a larger source up to this size the driver looks up keys itself, where it has the files; 0: Spark does.",
        unit="MB",
        least=0,
    )
    max_consecutive_errors: int = _setting(
        3,
        "After so many failures in a row that do not pass by themselves a stream table is suspended.",
        unit="failures",
        least=1,
    )
    conflict_retries: int = _setting(
        3, "How often a refresh begins anew at once when another commit was in its way.", unit="tries", least=0
    )
    max_change_ratio: float = _setting(
        0.5,
        "In AUTO, a change of at least 10,000 rows and more than this share of a source's rows is refreshed fully.",
        unit="share",
        least=0,
        most=1,
    )
    immediate_top_k_limit: int = _setting(
        1000, "IMMEDIATE refuses a query that keeps the first rows of an order, if more than so many.", unit="rows"
    )


@dataclass(frozen=True)
class CompileSettings:
    max_parse_depth: int = _setting(64, "A query that is nested deeper is refused.", unit="levels", least=1)
    max_parse_nodes: int = _setting(100_000, "A query with more parts is refused.", unit="nodes", least=1)
    max_grouping_sets: int = _setting(
        64, "GROUPING SETS, CUBE or ROLLUP of more sets are not maintained differentially.", unit="sets", least=1
    )
    dialect: str = _setting(
        "spark",
        "Whose SQL queries are written in, where a stream table does not say it.",
        choices=("spark", "databricks", "duckdb", "postgres", "snowflake"),
    )
    volatile_function_policy: str = _setting(
        "warn",
        "A query that reads the clock (current_date, now, …): recompute it each time it is due, or refuse it?",
        choices=("warn", "reject"),
    )
    immutable_functions: tuple[str, ...] = _setting(
        (), "Functions of your own that give the same answer for the same arguments, always."
    )


@dataclass(frozen=True)
class MaintenanceSettings:
    every_commits: int = _setting(
        50,
        "After so many refreshes that wrote, the files of a stream table are put in order when nobody waits; 0: never.",
        unit="commits",
        least=0,
    )
    compact_to_mb: int = _setting(32, "Smaller files are put together, up to this size.", unit="MB", least=1)
    vacuum_every: str = _setting(
        "1d", "How often files are removed that no version within retention consists of; 0s: never.", unit="duration"
    )


@dataclass(frozen=True)
class HistorySettings:
    retention_days: int = _setting(30, "How long the refresh history is kept.", unit="days", least=1)


@dataclass(frozen=True)
class UiSettings:
    theme: str = _setting("night", "The dashboard's theme.")
    glyphs: str = _setting("unicode", "The characters that the dashboard draws with.", choices=("unicode", "ascii"))


@dataclass(frozen=True)
class SchedulerSettings:
    tick_ms: int = _setting(250, "How often the scheduler looks for work.", unit="ms", least=1)
    heartbeat_s: float = _setting(2.0, "How often the scheduler renews its lease.", unit="s", least=0.05)
    lease_timeout_s: float = _setting(
        10.0, "A scheduler that was silent for this long has lost its lease.", unit="s", least=0.1
    )
    alert_cooldown_seconds: int = _setting(
        300, "The same alert is raised at most once in so many seconds.", unit="s", least=1
    )
    drain_timeout_s: float = _setting(
        60.0, "How long a stopping scheduler waits for running refreshes.", unit="s", least=0
    )


@dataclass(frozen=True)
class Setting:
    """One row of the table of settings."""

    key: str
    #: text, choice, integer, number, boolean, duration, names or table
    type: str
    default: Any
    meaning: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def env(self) -> str:
        return "TRICKLE_" + self.key.upper().replace(".", "_")

    @property
    def section(self) -> str:
        return self.key.partition(".")[0]


#: the sections of trickle.toml, in order
SECTIONS: dict[str, type] = {
    "workspace": WorkspaceSettings,
    "spark": SparkSettings,
    "sources": SourcesSettings,
    "refresh": RefreshSettings,
    "compile": CompileSettings,
    "maintenance": MaintenanceSettings,
    "history": HistorySettings,
    "ui": UiSettings,
    "scheduler": SchedulerSettings,
}


def _table_of_settings() -> tuple[Setting, ...]:
    names: dict[Any, str] = {
        str: "text",
        int: "integer",
        float: "number",
        bool: "boolean",
        tuple[str, ...]: "names",
    }
    table = []
    for section, kind in SECTIONS.items():
        hints = get_type_hints(kind)
        for each in fields(kind):
            facts = dict(each.metadata)
            type_name = names.get(hints[each.name], "table")
            if facts.get("choices"):
                type_name = "choice"
            elif facts.get("unit") == "duration":
                type_name = "duration"
            default = {} if type_name == "table" else each.default
            table.append(Setting(key=f"{section}.{each.name}", type=type_name, default=default, **facts))
    return tuple(table)


#: every setting there is, in the order of the sections
SETTINGS: tuple[Setting, ...] = _table_of_settings()

BY_KEY: dict[str, Setting] = {setting.key: setting for setting in SETTINGS}
