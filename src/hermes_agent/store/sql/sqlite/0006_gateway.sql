-- What goes out. `place` is where it appears, the order there is that of `id`; `due` is 1 while there is something to
-- do; a draft is what a run shows before it ends.
CREATE TABLE outbox (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT NOT NULL UNIQUE,
    channel  TEXT NOT NULL,
    place    TEXT NOT NULL,
    session  TEXT NOT NULL,
    inbox    INTEGER NOT NULL,
    body     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    draft    INTEGER NOT NULL,
    state    TEXT NOT NULL,
    due      INTEGER NOT NULL,
    pieces   TEXT NOT NULL,
    owner    TEXT,
    epoch    INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    repeats  INTEGER NOT NULL,
    ready_at REAL NOT NULL,
    error    TEXT NOT NULL,
    at       REAL NOT NULL,
    ended    REAL
);
CREATE INDEX outbox_due ON outbox (place, id) WHERE due = 1;
CREATE INDEX outbox_ready ON outbox (channel, id) WHERE due = 1 AND owner IS NULL;
CREATE INDEX outbox_owned ON outbox (owner) WHERE owner IS NOT NULL;
CREATE INDEX outbox_ended ON outbox (ended) WHERE due = 0;

-- Who asked to be let in and has not been answered; the code itself is not kept.
CREATE TABLE pairing (
    channel TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name    TEXT NOT NULL,
    salt    TEXT NOT NULL,
    hash    TEXT NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (channel, user_id)
) WITHOUT ROWID;

-- Who was let in.
CREATE TABLE paired (
    channel TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name    TEXT NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (channel, user_id)
) WITHOUT ROWID;

-- Codes that were wrong.
CREATE TABLE pairing_failure (
    channel TEXT NOT NULL,
    at      REAL NOT NULL
);

-- What people set for one chat: its topic, where the home channel is, and the like.
CREATE TABLE chat_fact (
    place TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (place, name)
) WITHOUT ROWID;
