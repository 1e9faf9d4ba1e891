-- What every person's file has, whatever else is remembered in it. Times are ISO-8601 UTC.

PRAGMA application_id = 0x4F4C5649;

CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT;

-- Who has the file open now; a row of a dead process means that it did not stop cleanly.
CREATE TABLE openings (
    token     TEXT PRIMARY KEY,
    pid       INTEGER NOT NULL,
    boot      TEXT NOT NULL,  -- process ids repeat after a restart of the machine
    started   TEXT NOT NULL,  -- and within one: when the process began, as the kernel counts it; '' when unknown
    opened_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Small facts about the file itself.
CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- Where an embedding model's cosines lie for a language, so that similarities mean the same for every model.
CREATE TABLE calibrations (
    model        TEXT,
    language     TEXT,
    unrelated    REAL NOT NULL,
    low          REAL NOT NULL,
    high         REAL NOT NULL,
    pairs_sha256 TEXT NOT NULL,
    fitted_at    TEXT NOT NULL,
    PRIMARY KEY (model, language)
) STRICT;

-- One set of vectors made by one embedding model, in the vec0 table vectors_<id>.
CREATE TABLE generations (
    id         INTEGER PRIMARY KEY,
    model      TEXT NOT NULL,
    dimension  INTEGER NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('building', 'active')),
    created_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX generations_one_active ON generations (state) WHERE state = 'active';
CREATE UNIQUE INDEX generations_one_building ON generations (state) WHERE state = 'building';

CREATE TABLE query_embeddings (
    model      TEXT,
    text_hash  BLOB,
    vector     BLOB NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (model, text_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX query_embeddings_expiry ON query_embeddings (expires_at);

-- The one list of searchable texts; ref names the row of its kind.
CREATE TABLE entries (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    kind      TEXT NOT NULL,
    ref       TEXT NOT NULL,
    text      TEXT NOT NULL,
    text_hash BLOB NOT NULL,
    language  TEXT NOT NULL,
    at        TEXT NOT NULL,
    UNIQUE (kind, ref)
) STRICT;

CREATE INDEX entries_text_hash ON entries (text_hash);

CREATE VIRTUAL TABLE entries_fts USING fts5 (stems, tokenize = 'unicode61 remove_diacritics 2');

-- Deleted words leave the index at once, not at some later merge.
INSERT INTO entries_fts (entries_fts, rank) VALUES ('secure-delete', 1);
