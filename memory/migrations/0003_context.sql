-- What becomes of turns that leave the window.

-- Segments waiting to be compressed; queued in the transaction of the turn that pushed them out.
CREATE TABLE segments (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    first_turn INTEGER NOT NULL REFERENCES turns (id),
    last_turn  INTEGER NOT NULL REFERENCES turns (id),
    queued_at  TEXT NOT NULL
) STRICT;

-- Key-value summaries, written once. The newest few of a chat are its slots.
CREATE TABLE summaries (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id     INTEGER NOT NULL REFERENCES sessions (id),
    channel        TEXT NOT NULL,
    chat           TEXT NOT NULL,
    first_turn     INTEGER NOT NULL,
    last_turn      INTEGER NOT NULL,
    topic          TEXT NOT NULL,
    discussed      TEXT NOT NULL,  -- JSON list
    outcome        TEXT NOT NULL,
    decisions      TEXT NOT NULL,  -- JSON list
    open_questions TEXT NOT NULL,  -- JSON list
    rendered       TEXT NOT NULL,
    token_count    INTEGER NOT NULL,
    language       TEXT NOT NULL,
    at             TEXT NOT NULL
) STRICT;

CREATE INDEX summaries_chat ON summaries (channel, chat, id);

-- What compressed turns said, as short self-contained lines.
CREATE TABLE statements (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL CHECK (kind IN ('world', 'experience', 'opinion', 'observation')),
    text       TEXT NOT NULL,
    speaker    TEXT NOT NULL,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    turn_id    INTEGER NOT NULL REFERENCES turns (id),
    language   TEXT NOT NULL,
    entities   TEXT NOT NULL,  -- JSON list
    at         TEXT NOT NULL
) STRICT;

CREATE INDEX statements_turn ON statements (turn_id);

-- What the requests before an assistant's turn contained, so that it can be shown why it said what it said.
CREATE TABLE used_items (
    turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    section TEXT NOT NULL,
    item    TEXT NOT NULL,
    PRIMARY KEY (turn_id, section, item)
) STRICT, WITHOUT ROWID;
