-- What happened, how it went, and when it may fade (E1 to E5).

-- A closed topic: written once. What becomes of it later stands in episode_lives.
CREATE TABLE episodes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    channel    TEXT NOT NULL,
    chat       TEXT NOT NULL,
    first_turn INTEGER NOT NULL,
    last_turn  INTEGER NOT NULL,
    turns      INTEGER NOT NULL,
    began_at   TEXT NOT NULL,
    ended_at   TEXT NOT NULL,
    language   TEXT NOT NULL,
    topic      TEXT NOT NULL,
    text       TEXT NOT NULL,  -- the whole as one line that fits into a request
    notes      TEXT NOT NULL,  -- JSON list: its summaries, by key
    trouble    TEXT NOT NULL,  -- the words in which the user said that something failed
    domain     TEXT NOT NULL,
    task_type  TEXT NOT NULL,
    tools      TEXT NOT NULL,  -- JSON lists
    tags       TEXT NOT NULL,
    entities   TEXT NOT NULL,
    labels     TEXT NOT NULL   -- the three lists above folded, as lines "tag:name", for searching
) STRICT;

CREATE INDEX episodes_ended ON episodes (ended_at);
CREATE INDEX episodes_kind ON episodes (domain, task_type, ended_at);
CREATE INDEX episodes_session ON episodes (session_id, first_turn);

CREATE TRIGGER episodes_are_never_changed BEFORE UPDATE ON episodes
BEGIN
    SELECT RAISE(ABORT, 'an episode is never changed');
END;

-- What changes in the life of an episode.
CREATE TABLE episode_lives (
    episode_id  INTEGER PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE,
    outcome     TEXT NOT NULL CHECK (outcome IN ('success', 'partial', 'failure', 'unknown')),
    accesses    INTEGER NOT NULL DEFAULT 0,
    accessed_at TEXT,
    merged_into INTEGER REFERENCES episodes (id) ON DELETE SET NULL,  -- the consolidated episode that stands for it
    compared    INTEGER NOT NULL DEFAULT 0,  -- 1: with its neighbours; 2: it was, and stays apart
    deleted_at  TEXT                         -- found by nothing from then on, erased some time later
) STRICT;

CREATE INDEX episode_lives_outcome ON episode_lives (outcome);
CREATE INDEX episode_lives_merged ON episode_lives (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX episode_lives_deleted ON episode_lives (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX episode_lives_uncompared ON episode_lives (episode_id) WHERE compared = 0;

-- Episodes that stand for several; the originals stay as they are.
CREATE TABLE consolidations (
    episode_id     INTEGER PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE,
    representative INTEGER NOT NULL,
    accesses       INTEGER NOT NULL,  -- those of the originals when it was made
    statistics     TEXT NOT NULL,     -- JSON
    variations     TEXT NOT NULL      -- JSON list: what each original has that the others have not
) STRICT;

-- The words of compressed turns, kept for a while, never searched: JSON, zlib-compressed.
CREATE TABLE traces (
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    first_turn INTEGER NOT NULL,
    last_turn  INTEGER NOT NULL,
    at         TEXT NOT NULL,
    words      BLOB NOT NULL,
    PRIMARY KEY (session_id, first_turn)
) STRICT;

CREATE INDEX traces_at ON traces (at);

-- The tools an answer took.
CREATE TABLE tool_uses (
    id      INTEGER PRIMARY KEY,
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    tool    TEXT NOT NULL,
    failed  INTEGER NOT NULL
) STRICT;

CREATE INDEX tool_uses_turn ON tool_uses (turn_id);

-- How a segment went, noted while its words are there; and the episode its summary became part of.
ALTER TABLE summaries ADD COLUMN signals TEXT NOT NULL DEFAULT '{}';
ALTER TABLE summaries ADD COLUMN episode_id INTEGER;
CREATE INDEX summaries_waiting ON summaries (session_id, first_turn) WHERE episode_id IS NULL;

-- Where forgotten episodes stood: a copy brought back loses them again. Numbers and times, no words.
CREATE TABLE forgotten_spans (
    session_id INTEGER NOT NULL,
    first_turn INTEGER NOT NULL,
    last_turn  INTEGER NOT NULL,
    began_at   TEXT NOT NULL,  -- after going back to a copy the same numbers may be given to other turns
    ended_at   TEXT NOT NULL,
    PRIMARY KEY (session_id, first_turn, last_turn, began_at)
) STRICT, WITHOUT ROWID;

-- Episodes are found by an index of words of their own: how rare a word is among statements is not changed by them.
CREATE VIRTUAL TABLE episodes_fts USING fts5 (stems, context, tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE episodes_vocabulary USING fts5vocab (episodes_fts, 'row');
