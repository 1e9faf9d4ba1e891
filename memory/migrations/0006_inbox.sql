-- Messages that came in through a channel, journalled before they are worked on: a crash loses none, and none is
-- answered twice. Once the reply was sent only the ids and times are left.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of arrival
    channel     TEXT NOT NULL,
    chat        TEXT NOT NULL,
    message     TEXT NOT NULL,  -- the channel's own id of it: what is delivered again is recognised
    speaker     TEXT,
    content     TEXT NOT NULL,  -- until it is stored as a turn, or answered; never that of a private message
    private     INTEGER NOT NULL DEFAULT 0,
    received_at TEXT NOT NULL,
    begun_at    TEXT,  -- when a command that must not be run twice was begun
    turn_id     INTEGER REFERENCES turns (id) ON DELETE SET NULL,  -- set in the transaction that stores the turn
    said        TEXT NOT NULL DEFAULT '[]',  -- what to say: the notices at first, then the whole reply; until it was sent
    answered_at TEXT,  -- set in the transaction that stores the reply
    sent_at     TEXT,
    UNIQUE (channel, chat, message)
) STRICT;

CREATE INDEX inbox_waiting ON inbox (channel, chat, id) WHERE sent_at IS NULL;
CREATE INDEX inbox_sent ON inbox (sent_at) WHERE sent_at IS NOT NULL;

-- What has to be known of a chat when the process starts anew.
CREATE TABLE chats (
    channel TEXT NOT NULL,
    chat    TEXT NOT NULL,
    private INTEGER NOT NULL,  -- whether nothing of what is said is to be kept
    PRIMARY KEY (channel, chat)
) STRICT, WITHOUT ROWID;
