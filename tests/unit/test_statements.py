"""Our SQL statements: what they parse to, and how they say what is wrong."""

from __future__ import annotations

import pytest

from engine.compile.explain_statements import (
    ExplainDelta,
    ExplainRefreshMode,
    ExplainRewrite,
    ExplainStreamTable,
    PreviewStreamTable,
    ValidateQuery,
)
from engine.compile.options import SOURCE_OPTIONS, STREAM_TABLE_OPTIONS
from engine.compile.source_ddl import AlterSource, DropSourceTable
from engine.compile.statements import (
    AlterStreamTable,
    CreateSource,
    CreateStreamTable,
    Dml,
    DropSource,
    DropStreamTable,
    PauseStreamTable,
    ResumeStreamTable,
    Select,
    ShowCdcStatus,
    ShowChangeBuffers,
    ShowSources,
    ShowStreamTables,
    Statement,
    VerifyStreamTable,
    parse_statement,
    split_script,
)
from engine.compile.upkeep_statements import (
    MaintainStreamTable,
    RefreshAll,
    RefreshStreamTable,
    ReinitializeStreamTable,
    RenameStreamTable,
    RepairStreamTable,
    ShowCreate,
)
from engine.errors import InvalidArgument, Position, QueryParseError, TrickleError

AT_START = Position(1, 1)


@pytest.mark.parametrize(
    ("what", "touched", "added"),
    [
        (
            "ADD COLUMNS (a INT, b STRUCT<c: INT, d: ARRAY<STRING>> COMMENT 'x, y', e DECIMAL(10, 2) AFTER a)",
            (),
            ("a", "b", "e"),
        ),
        ("ADD COLUMN m MAP<STRING, INT>, n INT", (), ("m", "n")),
        ("DROP COLUMN IF EXISTS `a b`", ("a b",), ()),
        ("DROP COLUMNS (a, b.c)", ("a", "b"), ()),
        ("RENAME COLUMN a TO b", ("a",), ("b",)),
        ("ALTER COLUMN a.b TYPE bigint", ("a",), ()),
        ("CHANGE a TYPE bigint", ("a",), ()),
        ("ALTER COLUMN a COMMENT 'the TYPE'", (), ()),
        ("ALTER COLUMN a SET NOT NULL", (), ()),
        ("CHANGE COLUMN a a BIGINT", ("a",), ()),
        ("CHANGE a b BIGINT", ("a",), ()),
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'true')", (), ()),
        ("DROP CONSTRAINT positive", (), ()),
        ("CLUSTER BY (a)", (), ()),
        # nobody knows
        ("REPLACE COLUMNS (a INT)", None, ()),
        ("RENAME TO b", None, ()),
        ("DROP PARTITION (a = 1)", None, ()),
    ],
)
def test_what_ddl_touches(what: str, touched: tuple[str, ...] | None, added: tuple[str, ...]) -> None:
    text = f"alter table `my src` {what}"
    found = parse_statement(text)
    assert isinstance(found, AlterSource)
    assert (found.touched, found.added) == (touched, added)
    assert (found.target, text[slice(*found.span)]) == ("my src", "`my src`")


@pytest.mark.parametrize(
    ("what", "sets", "clusters"),
    [
        ("SET TBLPROPERTIES ('delta.appendOnly' = 'true')", (("delta.appendOnly", "true"),), False),
        ("SET TBLPROPERTIES (delta.appendOnly = true, 'a' 'b')", (("delta.appendOnly", "true"), ("a", "b")), False),
        ("SET TBLPROPERTIES ('a' = -1, b.c = '2')", (("a", "-"), ("b.c", "2")), False),
        ("UNSET TBLPROPERTIES ('delta.appendOnly')", (), False),
        ("CLUSTER BY (a)", (), True),
        ("ADD COLUMN cluster INT", (), False),
    ],
)
def test_what_ddl_sets(what: str, sets: tuple[tuple[str, str], ...], clusters: bool) -> None:
    found = parse_statement(f"ALTER TABLE orders {what}")
    assert isinstance(found, AlterSource)
    assert (found.sets, found.clusters) == (sets, clusters)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "CREATE STREAM TABLE revenue AS SELECT 1 AS a",
            CreateStreamTable("revenue", "SELECT 1 AS a", Position(1, 32), {}),
        ),
        (
            "create stream table if not exists `Revenue`\nwith (schedule = '30s', refresh_mode=full) as\n  select 1;",
            CreateStreamTable("Revenue", "select 1", Position(3, 3), {"schedule": "30s", "refresh_mode": "FULL"}, True),
        ),
        (
            "CREATE STREAM TABLE a WITH (append_only = true, initialize = 'false', comment = 'it''s', "
            "enable_cdf = FALSE, schedule = 'Calculated') AS VALUES (1)",
            CreateStreamTable(
                "a",
                "VALUES (1)",
                Position(1, 138),
                {
                    "append_only": True,
                    "initialize": False,
                    "comment": "it's",
                    "enable_cdf": False,
                    "schedule": "calculated",
                },
            ),
        ),
        (
            "CREATE STREAM TABLE a APPEND ONLY AS SELECT 1",
            CreateStreamTable("a", "SELECT 1", Position(1, 38), {"append_only": True}),
        ),
        ("DROP STREAM TABLE a", DropStreamTable("a")),
        ("DROP STREAM TABLE IF EXISTS a CASCADE", DropStreamTable("a", True, True)),
        ("REFRESH STREAM TABLE a", RefreshStreamTable("a")),
        ("REFRESH STREAM TABLE a FULL", RefreshStreamTable("a", True)),
        ("refresh stream table a if older than '5m'", RefreshStreamTable("a", older_than="5m")),
        ("REFRESH ALL STREAM TABLES", RefreshAll()),
        ("REINITIALIZE STREAM TABLE a", ReinitializeStreamTable("a")),
        ("REPAIR STREAM TABLE a;", RepairStreamTable("a")),
        ("MAINTAIN STREAM TABLE a", MaintainStreamTable("a")),
        ("ALTER STREAM TABLE a RENAME TO `b`", RenameStreamTable("a", "b")),
        ("SHOW CREATE STREAM TABLE a", ShowCreate("a")),
        ("EXPLAIN STREAM TABLE a", ExplainStreamTable("a")),
        ("VALIDATE AS SELECT 1", ValidateQuery("SELECT 1", Position(1, 13), {})),
        (
            "PREVIEW STREAM TABLE WITH (limit = 3, refresh_mode = 'full') AS\nSELECT 1",
            PreviewStreamTable("SELECT 1", Position(2, 1), {"limit": 3, "refresh_mode": "FULL"}),
        ),
        ("EXPLAIN REFRESH MODE a", ExplainRefreshMode("a")),
        ("EXPLAIN REFRESH MODE FOR STREAM TABLE a", ExplainRefreshMode("a")),
        ("EXPLAIN REWRITE a", ExplainRewrite("a", "", Position(1, 18), {})),
        ("EXPLAIN REWRITE ALL AS SELECT 1", ExplainRewrite(None, "SELECT 1", Position(1, 24), {}, True)),
        (
            "CREATE STREAM TABLE a APPEND ONLY PARTITION BY (b, `c d`) AS SELECT 1",
            CreateStreamTable("a", "SELECT 1", Position(1, 62), {"append_only": True, "partition_by": ("b", "c d")}),
        ),
        (
            "create stream table a with (schedule = '5m') partitioned by (b) append only as SELECT 1",
            CreateStreamTable(
                "a",
                "SELECT 1",
                Position(1, 80),
                {"schedule": "5m", "append_only": True, "partition_by": ("b",)},
            ),
        ),
        (
            "CREATE STREAM TABLE a WITH (partition_by = (b, 'c')) AS SELECT 1",
            CreateStreamTable("a", "SELECT 1", Position(1, 57), {"partition_by": ("b", "c")}),
        ),
        ("ALTER STREAM TABLE a SET (partition_by = NULL)", AlterStreamTable("a", {"partition_by": ()})),
        ("ALTER STREAM TABLE a SET (partition_by = 'b, c')", AlterStreamTable("a", {"partition_by": ("b", "c")})),
        ("EXPLAIN DELTA FOR STREAM TABLE a", ExplainDelta("a", "", Position(1, 33), {})),
        ("EXPLAIN DELTA a", ExplainDelta("a", "", Position(1, 16), {})),
        ("EXPLAIN DELTA AS SELECT 1", ExplainDelta(None, "SELECT 1", Position(1, 18), {})),
        ("ALTER STREAM TABLE a PAUSE", PauseStreamTable("a")),
        ("ALTER STREAM TABLE a RESUME ;;", ResumeStreamTable("a")),
        ("VERIFY STREAM TABLE a", VerifyStreamTable("a")),
        ("SHOW STREAM TABLES", ShowStreamTables()),
        ("show sources", ShowSources()),
        ("show cdc status", ShowCdcStatus()),
        ("SHOW CHANGE BUFFERS;", ShowChangeBuffers()),
        ("TRUNCATE TABLE `a b`", Dml("DELETE FROM `a b`", Position(1, 10), "TRUNCATE", "a b")),
        ("DROP TABLE a", DropSourceTable("a")),
        ("CREATE SOURCE orders PATH '/data/o rders'", CreateSource("orders", "/data/o rders", {})),
        (
            "CREATE SOURCE o PATH 's3://b/o' WITH (key = ('id', line), cdc_mode = CDF, format = 'delta')",
            CreateSource("o", "s3://b/o", {"key": ("id", "line"), "cdc_mode": "cdf", "format": "delta"}),
        ),
        (
            "CREATE SOURCE o PATH 'x.csv' WITH (format = 'csv', options = ('sep=;', 'header=false'))",
            CreateSource("o", "x.csv", {"format": "csv", "options": {"sep": ";", "header": "false"}}),
        ),
        ("CREATE SOURCE o PATH 'x' WITH (key = 'id, line')", CreateSource("o", "x", {"key": ("id", "line")})),
        ("DROP SOURCE o", DropSource("o")),
        ("DROP SOURCE IF EXISTS o", DropSource("o", True)),
        ("SELECT 1", Select("SELECT 1", AT_START)),
        ("  (SELECT 1) UNION ALL (SELECT 2)", Select("(SELECT 1) UNION ALL (SELECT 2)", Position(1, 3))),
        ("WITH a AS (SELECT 1) SELECT * FROM a", Select("WITH a AS (SELECT 1) SELECT * FROM a", AT_START)),
        ("FROM orders SELECT id", Select("FROM orders SELECT id", AT_START)),
        ("TABLE orders", Select("TABLE orders", AT_START)),
        ("INSERT INTO o VALUES (1)", Dml("INSERT INTO o VALUES (1)", AT_START, "INSERT", "o")),
        (
            "INSERT OVERWRITE TABLE s.o SELECT 1",
            Dml("INSERT OVERWRITE TABLE s.o SELECT 1", AT_START, "INSERT", "s.o"),
        ),
        ("update o set a = 1", Dml("update o set a = 1", AT_START, "UPDATE", "o")),
        ("DELETE FROM `o o` WHERE a", Dml("DELETE FROM `o o` WHERE a", AT_START, "DELETE", "o o")),
        (
            "MERGE INTO o USING d ON true WHEN MATCHED THEN DELETE",
            Dml("MERGE INTO o USING d ON true WHEN MATCHED THEN DELETE", AT_START, "MERGE", "o"),
        ),
        (
            "WITH a AS (SELECT 1) INSERT INTO o SELECT * FROM a",
            Dml("WITH a AS (SELECT 1) INSERT INTO o SELECT * FROM a", AT_START, "INSERT", "o"),
        ),
    ],
)
def test_statements(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


def test_the_query_is_taken_as_it_was_written() -> None:
    query = "SELECT  /* why */ 'a;--b', `c``d`, r'\\d', \"q\"\n  FROM t -- inside\n WHERE é > 1L"
    text = f"CREATE STREAM TABLE x AS -- before\n\n  {query} -- after\n ; -- end"
    statement = parse_statement(text)
    assert isinstance(statement, CreateStreamTable)
    assert statement.query == query
    assert statement.query_position == Position(3, 3)


@pytest.mark.parametrize(
    ("text", "kind", "position", "hint"),
    [
        ("", QueryParseError, (1, 1), "SHOW STREAM TABLES"),
        ("-- only a comment", QueryParseError, (1, 18), "SHOW STREAM TABLES"),
        ("CREAT STREAM TABLE x AS SELECT 1", QueryParseError, (1, 1), "did you mean CREATE?"),
        ("SELEC 1", QueryParseError, (1, 1), "did you mean SELECT?"),
        ("CREATE STREM TABLE x AS SELECT 1", QueryParseError, (1, 8), "did you mean STREAM?"),
        ("CREATE STREAM TABEL x AS SELECT 1", QueryParseError, (1, 15), "did you mean TABLE?"),
        ("CREATE STREAM TABLE AS SELECT 1", QueryParseError, (1, 24), "STREAM TABLE [IF NOT EXISTS]"),
        ("CREATE STREAM TABLE x", QueryParseError, (1, 22), "AS SELECT"),
        ("CREATE STREAM TABLE x AS", QueryParseError, (1, 25), "AS SELECT"),
        ("CREATE STREAM TABLE x SELECT 1", QueryParseError, (1, 23), "AS SELECT"),
        ("CREATE STREAM TABLE x\nWIHT (schedule='1s') AS SELECT 1", QueryParseError, (2, 1), "did you mean WITH?"),
        ("CREATE STREAM TABLE x WITH (schedule '1s') AS SELECT 1", QueryParseError, (1, 38), "WITH (…)"),
        ("CREATE STREAM TABLE x WITH (schedule=) AS SELECT 1", QueryParseError, (1, 38), "WITH (…)"),
        ("CREATE STREAM TABLE x WITH (schedule='1s' AS SELECT 1", QueryParseError, (1, 43), "WITH (…)"),
        ("CREATE STREAM TABLE x WITH (schedule='1s', schedule='2s') AS SELECT 1", QueryParseError, (1, 44), "leave"),
        ("CREATE STREAM TABLE x WITH (shedule='1s') AS SELECT 1", InvalidArgument, (1, 29), "mean schedule?"),
        ("CREATE STREAM TABLE x WITH (sink='ducklake') AS SELECT 1", InvalidArgument, (1, 29), "known: schedule"),
        ("CREATE STREAM TABLE x WITH (a.b=1) AS SELECT 1", InvalidArgument, (1, 29), "known: schedule"),
        ("CREATE STREAM TABLE x WITH (schedule=NULL) AS SELECT 1", InvalidArgument, (1, 29), "'30s'"),
        ("CREATE STREAM TABLE x WITH (schedule=30) AS SELECT 1", InvalidArgument, (1, 29), "'30s'"),
        ("CREATE STREAM TABLE x WITH (schedule='soon') AS SELECT 1", InvalidArgument, (1, 29), "'30s'"),
        ("CREATE STREAM TABLE x WITH (refresh_mode='QUICK') AS SELECT 1", InvalidArgument, (1, 29), "AUTO, DIFF"),
        ("CREATE STREAM TABLE x WITH (append_only=1) AS SELECT 1", InvalidArgument, (1, 29), "true or false"),
        ("CREATE STREAM TABLE s.x AS SELECT 1", InvalidArgument, (1, 21), "use x"),
        ("CREATE STREAM TABLE `../x` AS SELECT 1", InvalidArgument, (1, 21), "another name"),
        ("CREATE STREAM TABLE __trickle_x AS SELECT 1", InvalidArgument, (1, 21), "another name"),
        ("CREATE OR REPLACE STREAM TABLE IF NOT EXISTS x AS SELECT 1", InvalidArgument, (1, 32), "leave one"),
        ("ALTER STREAM TABLE x", QueryParseError, (1, 21), "ALTER STREAM TABLE name"),
        ("ALTER STREAM TABLE x SET (initialize = true)", InvalidArgument, (1, 27), "known: schedule"),
        ("ALTER STREAM TABLE x SET schedule = '1s'", QueryParseError, (1, 26), "SET"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1", InvalidArgument, (1, 8), "STREAM TABLE [IF NOT"),
        ("CREATE DYNAMIC TABLE x AS SELECT 1", InvalidArgument, (1, 8), "STREAM TABLE [IF NOT"),
        ("CREATE TABLE x (a INT)", QueryParseError, (1, 8), "STREAM TABLE [IF NOT"),
        ("CREATE STREAM TABLE x PARTITION BY a AS SELECT 1", QueryParseError, (1, 36), "PARTITION BY"),
        ("CREATE STREAM TABLE x CLUSTER BY (a) AS SELECT 1", InvalidArgument, (1, 23), "PARTITION BY"),
        ("CREATE STREAM TABLE x CLUSTERED BY (a) AS SELECT 1", InvalidArgument, (1, 23), "PARTITION BY"),
        ("REFRESH STREAM TABLE x IF OLDER THAN '5 parsecs'", InvalidArgument, (1, 38), "30s"),
        ("REFRESH STREAM TABLE x IF OLDER THAN 5", QueryParseError, (1, 38), "OLDER THAN"),
        ("CREATE SOURCE x", QueryParseError, (1, 16), "PATH"),
        ("CREATE SOURCE x PATH ''", QueryParseError, (1, 22), "PATH"),
        ("CREATE SOURCE x PATH '/a' WITH (cdc='cdf')", InvalidArgument, (1, 33), "cdc_mode"),
        ("CREATE SOURCE x PATH '/a' WITH (key=())", InvalidArgument, (1, 33), "'id'"),
        ("DROP TABLES x", QueryParseError, (1, 6), "DROP STREAM TABLE"),
        ("DROP STREAM TABLE IF EXIST x", QueryParseError, (1, 22), "did you mean EXISTS?"),
        ("DROP STREAM TABLE x CASCAD", QueryParseError, (1, 21), "did you mean CASCADE?"),
        ("DROP STREAM TABLE x CASCADE y", QueryParseError, (1, 29), "DROP STREAM TABLE"),
        ("REFRESH STREAM TABLE", QueryParseError, (1, 21), "REFRESH STREAM TABLE name"),
        ("REFRESH TABLE x", QueryParseError, (1, 9), "REFRESH STREAM TABLE name"),
        ("EXPLAIN SELECT 1", QueryParseError, (1, 9), "VALIDATE AS SELECT"),
        ("EXPLAIN REFRESH x", QueryParseError, (1, 17), "EXPLAIN REFRESH MODE"),
        (
            "CREATE STREAM TABLE a WITH (differential_max_change_ratio = 1.5) AS SELECT 1",
            InvalidArgument,
            (1, 29),
            "from 0 to 1",
        ),
        ("EXPLAIN ANALYZE STREAM TABLE x", InvalidArgument, (1, 9), "leave ANALYZE out"),
        ("ALTER STREAM TABLE x RENAME y", QueryParseError, (1, 29), "RENAME TO"),
        ("ALTER STREAM TABLE x PAWS", QueryParseError, (1, 22), "did you mean PAUSE?"),
        ("SHOW TABLES", QueryParseError, (1, 6), "SHOW STREAM TABLES"),
        ("SHOW STREAM TABLE", QueryParseError, (1, 13), "did you mean TABLES?"),
        ("SELECT 1; SELECT 2", QueryParseError, (1, 9), "script"),
        ("SHOW SOURCES; SHOW SOURCES", QueryParseError, (1, 13), "script"),
        ("DELETE o", QueryParseError, (1, 8), "DELETE FROM"),
        ("INSERT o VALUES (1)", QueryParseError, (1, 8), "INSERT INTO"),
        ("SELECT 'a''b' , 'abc", QueryParseError, (1, 17), "close it"),
        ("SELECT 'it''s \"fine\"'\n, \"it's `open", QueryParseError, (2, 3), "close it"),
        ("SELECT 1 /* open", QueryParseError, (1, 10), "close it"),
        ("SELECT `open", QueryParseError, (1, 8), "close it"),
        ("\x00", QueryParseError, (1, 1), "a statement begins with"),
        ("🙂 🙂", QueryParseError, (1, 1), "a statement begins with"),
    ],
)
def test_bad_statements(text: str, kind: type[TrickleError], position: tuple[int, int], hint: str) -> None:
    with pytest.raises(kind) as caught:
        parse_statement(text)
    error = caught.value
    assert type(error) is kind
    assert error.position == Position(*position)
    assert error.hint is not None
    assert hint in error.hint


def test_a_script_is_split_at_semicolons_that_separate() -> None:
    script = "SELECT ';' ; -- a; b\n\n /* ; */ SHOW SOURCES;;\n\tSELECT `;`"
    assert split_script(script) == (
        ("SELECT ';'", Position(1, 1)),
        ("SHOW SOURCES", Position(3, 10)),
        ("SELECT `;`", Position(4, 2)),
    )
    assert split_script(" ;; -- nothing\n") == ()


@pytest.mark.parametrize(
    ("script", "position"),
    [
        ("SHOW SOURCES; DROP STREAM TABEL x", (1, 27)),
        ("SHOW SOURCES;\n  DROP\n STREAM TABEL x", (3, 9)),
        ("SHOW SOURCES;  CREATE STREAM TABLE x WITH (\n  shedule = '1s') AS SELECT 1", (2, 3)),
    ],
)
def test_errors_in_a_script_are_placed_in_the_whole_script(script: str, position: tuple[int, int]) -> None:
    (_, (text, start)) = split_script(script)
    with pytest.raises(TrickleError) as caught:
        parse_statement(text, start)
    assert caught.value.position == Position(*position)


def test_an_open_quotation_is_placed_in_the_whole_script() -> None:
    with pytest.raises(QueryParseError) as caught:
        parse_statement("SELECT 1,\n 'a", Position(3, 9))
    assert caught.value.position == Position(4, 2)
    with pytest.raises(QueryParseError) as caught:
        split_script("SHOW SOURCES;\n SELECT 'a")
    assert caught.value.position == Position(2, 9)


def test_every_prefix_of_a_statement_parses_or_fails_with_a_typed_error() -> None:
    text = (
        "CREATE STREAM TABLE IF NOT EXISTS `a` WITH (schedule = '30s', key = ('x', y), n = 1.5e3) APPEND ONLY "
        "AS WITH q AS (SELECT /*+ HINT(a) */ 'it''s' FROM t) SELECT * FROM q; DROP STREAM TABLE a CASCADE"
    )
    failed = 0
    for length in range(len(text)):
        error = parse_error(text[:length])
        if error is not None:
            failed += 1
            assert error.position is not None
            assert error.hint
    assert failed > len(text) // 2


def parse_error(text: str) -> TrickleError | None:
    try:
        parse_statement(text)
    except TrickleError as error:
        return error
    return None


def test_options_are_named_as_the_arguments_of_the_engine() -> None:
    assert {option.name for option in STREAM_TABLE_OPTIONS} == {
        "schedule",
        "refresh_mode",
        "append_only",
        "differential_max_change_ratio",
        "initialize",
        "comment",
        "enable_cdf",
        "dialect",
        "partition_by",
    }
    assert {option.name for option in SOURCE_OPTIONS} == {"format", "cdc_mode", "key", "enable_cdf", "options"}
