CREATE TABLE session (
    id           TEXT PRIMARY KEY,
    principal    TEXT NOT NULL,
    conversation TEXT NOT NULL,
    surface      TEXT NOT NULL,
    title        TEXT NOT NULL,
    model        TEXT NOT NULL,
    workspace    TEXT NOT NULL,
    created      double precision NOT NULL,
    updated      double precision NOT NULL,
    parent       TEXT NOT NULL,
    prefix       TEXT NOT NULL,
    deleted      double precision
);
CREATE INDEX session_by_principal ON session (principal, updated) WHERE deleted IS NULL;
CREATE INDEX session_by_time ON session (updated) WHERE deleted IS NULL;

CREATE TABLE current_session (
    conversation TEXT PRIMARY KEY,
    session      TEXT NOT NULL REFERENCES session (id)
);

CREATE TABLE prefix (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
);

-- The log. `id` is the order of all commits, for readers of every session; `number` is the order within one.
CREATE TABLE entry (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT NOT NULL REFERENCES session (id),
    number  bigint NOT NULL,
    run     TEXT NOT NULL,
    at      double precision NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL,
    xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    UNIQUE (session, number)
);
-- The order in which a reader of every session may go without missing what commits later under a lower id.
CREATE INDEX entry_by_commit ON entry (xid, id);

-- Sessions whose log was deleted, for whoever keeps a view of it.
CREATE TABLE removal (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session TEXT NOT NULL
);

-- English stems, and no word left out. What is indexed comes from the log; `indexed` says how far.
CREATE TEXT SEARCH DICTIONARY hermes_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION hermes (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION hermes ALTER MAPPING FOR asciiword, word WITH hermes_stem;
CREATE TABLE words (
    entry bigint PRIMARY KEY REFERENCES entry (id) ON DELETE CASCADE,
    tsv   tsvector NOT NULL
);
CREATE INDEX words_by_tsv ON words USING gin (tsv);
CREATE TABLE indexed (
    xid   xid8 NOT NULL,
    entry bigint NOT NULL
);
INSERT INTO indexed VALUES ('0', 0);

CREATE TABLE effect (
    session  TEXT NOT NULL REFERENCES session (id),
    call_id  TEXT NOT NULL,
    tool     TEXT NOT NULL,
    effect   TEXT NOT NULL,
    key      TEXT NOT NULL,
    summary  TEXT NOT NULL,
    state    TEXT NOT NULL,
    handle   TEXT NOT NULL,
    at       double precision NOT NULL,
    PRIMARY KEY (session, call_id)
);
CREATE INDEX effect_open ON effect (session) WHERE state <> 'done';

CREATE TABLE usage (
    call_id     TEXT PRIMARY KEY,
    session     TEXT NOT NULL,
    run         TEXT NOT NULL,
    turn        bigint NOT NULL,
    purpose     TEXT NOT NULL,
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    prefix      TEXT NOT NULL,
    messages    bigint NOT NULL,
    reserved    double precision,
    at          double precision NOT NULL,
    principal   TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    seconds     double precision,
    known       bigint NOT NULL,
    input       bigint NOT NULL,
    output      bigint NOT NULL,
    cached      bigint NOT NULL,
    cache_write bigint NOT NULL,
    reasoning   bigint NOT NULL,
    cost        double precision
);
CREATE INDEX usage_by_session ON usage (session);
CREATE INDEX usage_by_time ON usage (at);

-- `token` is the accepting call's own mark, so that it knows its row again when the commit's acknowledgement was lost.
CREATE TABLE inbox (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source    TEXT NOT NULL,
    source_id TEXT NOT NULL,
    lane      TEXT NOT NULL,
    body      TEXT NOT NULL,
    state     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    at        double precision NOT NULL,
    ended     double precision,
    epoch     bigint NOT NULL,
    token     TEXT NOT NULL,
    UNIQUE (source, source_id)
);
CREATE INDEX inbox_open ON inbox (lane, id) WHERE ended IS NULL;

-- One row per session that ever had mail. `queued` is the inbox id that made it ready: the order among lanes.
CREATE TABLE lane (
    id         TEXT PRIMARY KEY,
    queue      TEXT NOT NULL,
    pending    bigint NOT NULL,
    queued     bigint NOT NULL,
    ready_at   double precision NOT NULL,
    owner      TEXT,
    epoch      bigint NOT NULL,
    stop_epoch bigint NOT NULL,
    attempts   bigint NOT NULL,
    crashes    bigint NOT NULL,
    error      TEXT NOT NULL
);
CREATE INDEX lane_ready ON lane (queue, queued) WHERE owner IS NULL AND pending > 0;
CREATE INDEX lane_owned ON lane (owner) WHERE owner IS NOT NULL;

-- `seen` is seconds of the server's clock, the only one that all workers share.
CREATE TABLE worker (
    id      TEXT PRIMARY KEY,
    key     bigint NOT NULL,
    name    TEXT NOT NULL,
    started double precision NOT NULL,
    seen    double precision NOT NULL
);

-- The last committed change of each connection: who lost the answer to a commit finds here whether it was made. (A
-- transaction's id does not tell: after a crash of the server the ids of lost transactions are given out again.)
CREATE TABLE commit_mark (
    client text PRIMARY KEY,
    token  text NOT NULL,
    at     timestamptz NOT NULL
) WITH (fillfactor = 50);
