-- What each answer cost, as numbers only; nothing anybody said.
CREATE TABLE requests (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    at              TEXT NOT NULL,
    session_id      INTEGER,           -- none for work in the background
    kind            TEXT NOT NULL,     -- model, summary: a model was asked; known, cached, repeated: none was
    model           TEXT NOT NULL,
    tokens          INTEGER NOT NULL,  -- as we count them; 0 where no model was asked
    history_tokens  INTEGER NOT NULL,  -- what the whole history of the session would have cost
    prompt_tokens   INTEGER NOT NULL,  -- as the provider counted them; 0: not told
    cached_tokens   INTEGER NOT NULL,  -- of these, read from the provider's cache
    reply_tokens    INTEGER NOT NULL,
    cost            REAL,              -- none: the model has no price
    cut             INTEGER NOT NULL,  -- whether the message had to be cut
    sections        TEXT NOT NULL,     -- JSON: tokens by section
    stages          TEXT NOT NULL,     -- JSON: seconds by stage
    saved           TEXT NOT NULL      -- JSON: tokens that were not sent, by what saved them
) STRICT;

CREATE INDEX requests_at ON requests (at);
CREATE INDEX requests_session ON requests (session_id, id);
