-- What it takes to find statements again, and to let those fade that nobody reads.

-- The days on which the assistant was used; a holiday counts for nothing.
CREATE TABLE days (
    number INTEGER PRIMARY KEY,
    day    TEXT NOT NULL UNIQUE
) STRICT;

ALTER TABLE statements ADD COLUMN gist BLOB NOT NULL DEFAULT x'';       -- equal for lines that say the same
ALTER TABLE statements ADD COLUMN read_on INTEGER NOT NULL DEFAULT 0;   -- number of the last day it was stored or read

CREATE INDEX statements_gist ON statements (gist);
CREATE INDEX statements_read_on ON statements (read_on);
CREATE INDEX statements_at ON statements (at);
CREATE INDEX statements_speaker ON statements (speaker);

-- Reads not yet counted.
ALTER TABLE used_items ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX used_items_uncounted ON used_items (turn_id) WHERE counted = 0;

-- Lines are found by their own words and, with less weight, by those said around them.
CREATE VIRTUAL TABLE entries_words USING fts5 (stems, context, tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO entries_words (entries_words, rank) VALUES ('secure-delete', 1);
INSERT INTO entries_words (rowid, stems, context) SELECT rowid, stems, '' FROM entries_fts;
DROP TABLE entries_fts;
ALTER TABLE entries_words RENAME TO entries_fts;
CREATE VIRTUAL TABLE entries_vocabulary USING fts5vocab (entries_fts, 'row');
