CREATE TABLE session (
    id           TEXT PRIMARY KEY,
    principal    TEXT NOT NULL,
    conversation TEXT NOT NULL,
    surface      TEXT NOT NULL,
    title        TEXT NOT NULL,
    model        TEXT NOT NULL,
    workspace    TEXT NOT NULL,
    created      REAL NOT NULL,
    updated      REAL NOT NULL,
    parent       TEXT NOT NULL,
    prefix       TEXT NOT NULL,
    deleted      REAL
) WITHOUT ROWID;
CREATE INDEX session_by_principal ON session (principal, updated) WHERE deleted IS NULL;
CREATE INDEX session_by_time ON session (updated) WHERE deleted IS NULL;

CREATE TABLE current_session (
    conversation TEXT PRIMARY KEY,
    session      TEXT NOT NULL REFERENCES session (id)
) WITHOUT ROWID;

CREATE TABLE prefix (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
);

-- The log. `id` is the order of all commits, for readers of every session; `number` is the order within one.
CREATE TABLE entry (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES session (id),
    number  INTEGER NOT NULL,
    run     TEXT NOT NULL,
    at      REAL NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL,
    UNIQUE (session, number)
);

-- Sessions whose log was deleted, for whoever keeps a view of it.
CREATE TABLE removal (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL
);

CREATE TABLE effect (
    session  TEXT NOT NULL REFERENCES session (id),
    call_id  TEXT NOT NULL,
    tool     TEXT NOT NULL,
    effect   TEXT NOT NULL,
    key      TEXT NOT NULL,
    summary  TEXT NOT NULL,
    state    TEXT NOT NULL,
    handle   TEXT NOT NULL,
    at       REAL NOT NULL,
    PRIMARY KEY (session, call_id)
) WITHOUT ROWID;
CREATE INDEX effect_open ON effect (session) WHERE state <> 'done';

CREATE TABLE usage (
    call_id     TEXT PRIMARY KEY,
    session     TEXT NOT NULL,
    run         TEXT NOT NULL,
    turn        INTEGER NOT NULL,
    purpose     TEXT NOT NULL,
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    prefix      TEXT NOT NULL,
    messages    INTEGER NOT NULL,
    reserved    REAL,
    at          REAL NOT NULL,
    principal   TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    seconds     REAL,
    known       INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cached      INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    cost        REAL
) WITHOUT ROWID;
CREATE INDEX usage_by_session ON usage (session);
CREATE INDEX usage_by_time ON usage (at);

-- `token` is the accepting call's own mark, so that it knows its row again when the commit's acknowledgement was lost.
CREATE TABLE inbox (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    source    TEXT NOT NULL,
    source_id TEXT NOT NULL,
    lane      TEXT NOT NULL,
    body      TEXT NOT NULL,
    state     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    at        REAL NOT NULL,
    ended     REAL,
    epoch     INTEGER NOT NULL,
    token     TEXT NOT NULL,
    UNIQUE (source, source_id)
);
CREATE INDEX inbox_open ON inbox (lane, id) WHERE ended IS NULL;

-- One row per session that ever had mail. `queued` is the inbox id that made it ready: the order among lanes.
CREATE TABLE lane (
    id         TEXT PRIMARY KEY,
    queue      TEXT NOT NULL,
    pending    INTEGER NOT NULL,
    queued     INTEGER NOT NULL,
    ready_at   REAL NOT NULL,
    owner      TEXT,
    epoch      INTEGER NOT NULL,
    stop_epoch INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    error      TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX lane_ready ON lane (queue, queued) WHERE owner IS NULL AND pending > 0;
CREATE INDEX lane_owned ON lane (owner) WHERE owner IS NOT NULL;

-- `seen` is seconds of the machine's monotonic clock, which all processes that share the file also share.
CREATE TABLE worker (
    id      TEXT PRIMARY KEY,
    key     INTEGER NOT NULL,
    name    TEXT NOT NULL,
    started REAL NOT NULL,
    seen    REAL NOT NULL
) WITHOUT ROWID;
