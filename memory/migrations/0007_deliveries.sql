-- Where the parts of a reply are in their channel. A place is noted before the words are put there, so that a reply
-- sent anew after a crash takes the same places. Kept as long as the message is recognised: reactions refer to them.
CREATE TABLE deliveries (
    entry INTEGER NOT NULL REFERENCES inbox (id) ON DELETE CASCADE,
    part  INTEGER NOT NULL,
    place TEXT NOT NULL,  -- the channel's own id of the message
    PRIMARY KEY (entry, part)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_place ON deliveries (place);

-- Facts about to fade that were offered for keeping; once each time they come near it.
CREATE TABLE offered (
    fact_id      INTEGER PRIMARY KEY,
    confirmed_at TEXT NOT NULL
) STRICT;

-- The message an edited one takes the place of.
ALTER TABLE inbox ADD COLUMN corrects TEXT;
