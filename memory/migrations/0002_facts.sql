-- What was said, and the facts learnt from it.

CREATE TABLE sessions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    channel   TEXT NOT NULL,
    chat      TEXT NOT NULL,
    language  TEXT NOT NULL,  -- of the last message whose language was clear
    opened_at TEXT NOT NULL,
    closed_at TEXT
) STRICT;

CREATE UNIQUE INDEX sessions_one_open ON sessions (channel, chat) WHERE closed_at IS NULL;

CREATE TABLE turns (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id          INTEGER NOT NULL REFERENCES sessions (id),
    turn_number         INTEGER NOT NULL,
    role                TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    speaker             TEXT NOT NULL,
    content             TEXT NOT NULL,
    timestamp           TEXT NOT NULL,
    token_count         INTEGER NOT NULL,
    semantic_continuity REAL,
    topic_shift         INTEGER NOT NULL DEFAULT 0,
    left_window         INTEGER NOT NULL DEFAULT 0,  -- 1 once it is queued for compression
    summarized_at       TEXT,  -- when its content was replaced by statements and a summary
    UNIQUE (session_id, turn_number)
) STRICT;

-- A fact is never changed in place by a contradiction: it is superseded by a new one.
CREATE TABLE facts (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    domain            TEXT NOT NULL CHECK (domain IN ('work', 'preferences', 'decisions', 'personal', 'projects')),
    fact              TEXT NOT NULL,
    confidence        TEXT NOT NULL CHECK (confidence IN ('high', 'medium', 'low')),
    created_at        TEXT NOT NULL,
    last_confirmed_at TEXT NOT NULL,
    source            TEXT NOT NULL CHECK (source IN ('explicit', 'inferred')),
    quote             TEXT NOT NULL,
    turn_id           INTEGER REFERENCES turns (id) ON DELETE SET NULL,
    language          TEXT NOT NULL,
    status            TEXT NOT NULL CHECK (status IN ('current', 'superseded', 'undone')),
    superseded_by     INTEGER REFERENCES facts (id) ON DELETE SET NULL,
    pinned            INTEGER NOT NULL DEFAULT 0,
    kind              TEXT NOT NULL DEFAULT 'statement',
    attribute         TEXT NOT NULL DEFAULT '',  -- what it is about: home, name, job ...
    key               TEXT NOT NULL DEFAULT '',  -- which of these: favourite band, favourite film
    value             TEXT NOT NULL DEFAULT '',
    single            INTEGER NOT NULL DEFAULT 0,
    polarity          INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX facts_status ON facts (status, last_confirmed_at);
CREATE INDEX facts_attribute ON facts (attribute, status) WHERE attribute != '';
CREATE INDEX facts_turn ON facts (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX facts_superseded_by ON facts (superseded_by) WHERE superseded_by IS NOT NULL;

-- All that was done to facts, with what it takes to revert it; what was forgotten keeps id, time and action only.
CREATE TABLE fact_events (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    batch   INTEGER NOT NULL,  -- events of one act are reverted together
    fact_id INTEGER NOT NULL,
    at      TEXT NOT NULL,
    action  TEXT NOT NULL,
    before  TEXT,
    after   TEXT,
    undone  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX fact_events_fact ON fact_events (fact_id, id);
CREATE INDEX fact_events_batch ON fact_events (batch);

-- Keyed hashes of what was forgotten, so that background work and imports do not bring it back.
CREATE TABLE tombstones (
    hash BLOB PRIMARY KEY,
    at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
