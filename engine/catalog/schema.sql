-- The catalog of a workspace. Times are ISO 8601 in UTC; columns that end in _json hold one JSON value.
-- A change of this file is a new schema version: see migrations.py.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Counters that only ever grow, also over crashes.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- Sources and stream tables share one namespace: a query names either.
CREATE TABLE relations (
    name TEXT PRIMARY KEY COLLATE NOCASE,
    kind TEXT NOT NULL CHECK (kind IN ('source', 'stream table'))
) WITHOUT ROWID;

CREATE TABLE sources (
    name     TEXT PRIMARY KEY COLLATE NOCASE REFERENCES relations (name) ON DELETE CASCADE ON UPDATE CASCADE,
    path     TEXT NOT NULL,
    format   TEXT NOT NULL,
    cdc_mode TEXT NOT NULL,
    key_json TEXT NOT NULL,
    added_at TEXT,
    -- what a copy is kept of, where the source is no Delta table
    polled_json TEXT,
    owner    TEXT NOT NULL
) WITHOUT ROWID;

-- Their names are no relation's name; whoever adds either looks, because nobody else writes meanwhile.
CREATE TABLE views (
    name       TEXT PRIMARY KEY COLLATE NOCASE,
    query      TEXT NOT NULL,
    created_at TEXT,
    owner      TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE stream_tables (
    id               TEXT PRIMARY KEY,
    name             TEXT NOT NULL UNIQUE COLLATE NOCASE REFERENCES relations (name) ON DELETE CASCADE ON UPDATE CASCADE,
    query            TEXT NOT NULL,
    refresh_mode     TEXT NOT NULL,
    schedule         TEXT NOT NULL,
    interval_s       REAL NOT NULL,
    path             TEXT NOT NULL,
    owner            TEXT NOT NULL,
    created_at       TEXT NOT NULL,
    columns_json     TEXT NOT NULL,
    fingerprint      TEXT NOT NULL,
    append_only      INTEGER NOT NULL CHECK (append_only IN (0, 1)),
    -- NULL: as the settings say
    differential_max_change_ratio REAL,
    full_reason_json TEXT,
    -- the query as it was written, where that was not in Spark's SQL
    written_json     TEXT,
    -- of each source the columns that it had when the query was written, with their types
    known_columns_json TEXT,
    comment          TEXT NOT NULL,
    partition_by_json TEXT
) WITHOUT ROWID;

-- Which relations a stream table reads, in the order of its query.
CREATE TABLE reads (
    st_id    TEXT NOT NULL REFERENCES stream_tables (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    source   TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (st_id, position)
) WITHOUT ROWID;

CREATE INDEX reads_by_source ON reads (source);

CREATE TABLE progress (
    st_id              TEXT PRIMARY KEY REFERENCES stream_tables (id) ON DELETE CASCADE,
    sequence           INTEGER NOT NULL,
    refresh_id         TEXT,
    frontier_json      TEXT,
    data_as_of_at      TEXT,
    populated          INTEGER NOT NULL CHECK (populated IN (0, 1)),
    paused             INTEGER NOT NULL CHECK (paused IN (0, 1)),
    consecutive_errors INTEGER NOT NULL,
    -- since when it is left alone after too many of them
    suspended_at       TEXT,
    error              TEXT,
    error_code         TEXT,
    error_hint         TEXT,
    error_at           TEXT,
    verified_at        TEXT,
    verified_equal     INTEGER CHECK (verified_equal IN (0, 1)),
    next_due_at        TEXT
) WITHOUT ROWID;

-- What the refreshes of a stream table took: estimates are made of it. Lost, it is learned anew.
CREATE TABLE costs (
    st_id      TEXT PRIMARY KEY REFERENCES stream_tables (id) ON DELETE CASCADE,
    costs_json TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE events (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    at         TEXT NOT NULL,
    kind       TEXT NOT NULL,
    severity   TEXT NOT NULL,
    subject    TEXT NOT NULL COLLATE NOCASE,
    text       TEXT NOT NULL,
    refresh_id TEXT
);

CREATE INDEX events_by_subject ON events (subject, number);

-- One row: who runs the workspace's scheduler. The epoch grows with each holder and stays when nobody holds it.
CREATE TABLE lease (
    only_row      INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch         INTEGER NOT NULL,
    pid           INTEGER,
    host          TEXT,
    boot_id       TEXT,
    pid_namespace TEXT,
    started       TEXT,
    -- seconds of the monotonic clock, which all processes since one boot share
    heartbeat_s   REAL,
    -- seconds of the wall clock, for a holder on another machine
    heartbeat_at  REAL
);

INSERT INTO lease (only_row, epoch) VALUES (1, 0);
INSERT INTO counters (name, value) VALUES ('refresh', 0);
