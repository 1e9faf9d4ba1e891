-- What the user thinks of an answer (+1, -1).
CREATE TABLE reactions (
    turn_id INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    value   INTEGER NOT NULL CHECK (value IN (-1, 1)),
    at      TEXT NOT NULL
) STRICT;
