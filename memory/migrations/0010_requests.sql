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

-- Answers that may be given again for a day (C1, D1), and the facts each of them rests on.
CREATE TABLE answers (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    question   TEXT NOT NULL,
    language   TEXT NOT NULL,
    words      TEXT NOT NULL,     -- of the question, in the form in which questions are compared
    answer     TEXT NOT NULL,
    session_id INTEGER NOT NULL,
    turn_id    INTEGER NOT NULL,  -- the turn in which it was last given
    at         TEXT NOT NULL,     -- when the model gave it
    served     INTEGER NOT NULL DEFAULT 0  -- whether it was given again: asked once more, the model is asked
) STRICT;

CREATE INDEX answers_words ON answers (language, words);
CREATE INDEX answers_at ON answers (at);

CREATE TABLE answer_facts (
    answer_id INTEGER NOT NULL REFERENCES answers (id) ON DELETE CASCADE,
    fact_id   INTEGER NOT NULL,
    PRIMARY KEY (answer_id, fact_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX answer_facts_fact ON answer_facts (fact_id);

-- In the same transaction as the change, whoever makes it: no answer outlives a fact it rests on.
CREATE TRIGGER answers_of_a_changed_fact AFTER UPDATE ON facts
WHEN old.fact IS NOT new.fact OR old.status IS NOT new.status
BEGIN
    DELETE FROM answers WHERE id IN (SELECT answer_id FROM answer_facts WHERE fact_id = old.id);
END;

CREATE TRIGGER answers_of_a_deleted_fact AFTER DELETE ON facts
BEGIN
    DELETE FROM answers WHERE id IN (SELECT answer_id FROM answer_facts WHERE fact_id = old.id);
END;

-- What went wrong while a message was answered, in one line; nothing anybody said.
CREATE TABLE problems (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         TEXT NOT NULL,
    session_id INTEGER NOT NULL,
    source     TEXT NOT NULL,  -- the name of a tool, or "model"
    text       TEXT NOT NULL
) STRICT;

CREATE INDEX problems_session ON problems (session_id, id);
