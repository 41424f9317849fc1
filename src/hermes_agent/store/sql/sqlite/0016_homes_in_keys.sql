-- Whose data a row is, where a row is found by something from outside: rows of before are of home 1. What is keyed by the
-- id of a session belongs to the session's home.
ALTER TABLE version RENAME COLUMN home TO machine;
ALTER TABLE session ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE usage ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE version ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE pairing_failure ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE learning_job ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE learning_support ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE learning_lesson ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE known_fact ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE known_fact_change ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE home ADD COLUMN home INTEGER NOT NULL DEFAULT 1;

-- Keys that begin with the home: SQLite makes their tables anew, with the numbers that rows were given.
ALTER TABLE current_session RENAME TO before;
CREATE TABLE current_session (
    home        INTEGER NOT NULL DEFAULT 1,
    conversation TEXT NOT NULL,
    session     TEXT NOT NULL REFERENCES session (id),
    PRIMARY KEY (home, conversation)
) WITHOUT ROWID;
INSERT INTO current_session (conversation, session) SELECT conversation, session FROM before;
DROP TABLE before;
ALTER TABLE inbox RENAME TO before;
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    home        INTEGER NOT NULL DEFAULT 1,
    source      TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    lane        TEXT NOT NULL,
    body        TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT NOT NULL,
    at          REAL NOT NULL,
    ended       REAL,
    epoch       INTEGER NOT NULL,
    token       TEXT NOT NULL,
    withdraws   TEXT NOT NULL DEFAULT '',
    replaces    TEXT NOT NULL DEFAULT '',
    UNIQUE (home, source, source_id)
);
INSERT INTO sqlite_sequence SELECT 'inbox', seq FROM sqlite_sequence WHERE name = 'before';
INSERT INTO inbox (id, source, source_id, lane, body, state, reason, at, ended, epoch, token, withdraws, replaces)
SELECT id, source, source_id, lane, body, state, reason, at, ended, epoch, token, withdraws, replaces FROM before;
DROP TABLE before;
CREATE INDEX inbox_open ON inbox (lane, id) WHERE ended IS NULL;
CREATE INDEX inbox_withdraws ON inbox (lane) WHERE withdraws <> '' AND ended IS NULL;
CREATE INDEX inbox_never ON inbox (ended) WHERE lane = '';
CREATE INDEX inbox_replaces ON inbox (replaces) WHERE replaces <> '';
ALTER TABLE outbox RENAME TO before;
CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    home        INTEGER NOT NULL DEFAULT 1,
    key         TEXT NOT NULL,
    channel     TEXT NOT NULL,
    place       TEXT NOT NULL,
    session     TEXT NOT NULL,
    inbox       INTEGER NOT NULL,
    body        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    draft       INTEGER NOT NULL,
    state       TEXT NOT NULL,
    due         INTEGER NOT NULL,
    pieces      TEXT NOT NULL,
    owner       TEXT,
    epoch       INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    repeats     INTEGER NOT NULL,
    ready_at    REAL NOT NULL,
    error       TEXT NOT NULL,
    at          REAL NOT NULL,
    ended       REAL,
    UNIQUE (home, key)
);
INSERT INTO sqlite_sequence SELECT 'outbox', seq FROM sqlite_sequence WHERE name = 'before';
INSERT INTO outbox (id, key, channel, place, session, inbox, body, version, draft, state, due, pieces, owner, epoch,
attempts, repeats, ready_at, error, at, ended) SELECT id, key, channel, place, session, inbox, body, version, draft,
state, due, pieces, owner, epoch, attempts, repeats, ready_at, error, at, ended FROM before;
DROP TABLE before;
CREATE INDEX outbox_due ON outbox (home, place, id) WHERE due = 1;
CREATE INDEX outbox_ready ON outbox (home, channel, id) WHERE due = 1 AND owner IS NULL;
CREATE INDEX outbox_owned ON outbox (owner) WHERE owner IS NOT NULL;
CREATE INDEX outbox_ended ON outbox (ended) WHERE due = 0;
ALTER TABLE pairing RENAME TO before;
CREATE TABLE pairing (
    home        INTEGER NOT NULL DEFAULT 1,
    channel     TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    name        TEXT NOT NULL,
    salt        TEXT NOT NULL,
    hash        TEXT NOT NULL,
    at          REAL NOT NULL,
    PRIMARY KEY (home, channel, user_id)
) WITHOUT ROWID;
INSERT INTO pairing (channel, user_id, name, salt, hash, at) SELECT channel, user_id, name, salt, hash, at FROM
before;
DROP TABLE before;
ALTER TABLE paired RENAME TO before;
CREATE TABLE paired (
    home        INTEGER NOT NULL DEFAULT 1,
    channel     TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    name        TEXT NOT NULL,
    at          REAL NOT NULL,
    PRIMARY KEY (home, channel, user_id)
) WITHOUT ROWID;
INSERT INTO paired (channel, user_id, name, at) SELECT channel, user_id, name, at FROM before;
DROP TABLE before;
ALTER TABLE chat_fact RENAME TO before;
CREATE TABLE chat_fact (
    home        INTEGER NOT NULL DEFAULT 1,
    place       TEXT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    PRIMARY KEY (home, place, name)
) WITHOUT ROWID;
INSERT INTO chat_fact (place, name, value) SELECT place, name, value FROM before;
DROP TABLE before;
ALTER TABLE account RENAME TO before;
CREATE TABLE account (
    home        INTEGER NOT NULL DEFAULT 1,
    id          TEXT NOT NULL,
    at          REAL NOT NULL,
    money       INTEGER NOT NULL,
    tokens      INTEGER NOT NULL,
    held_money  INTEGER NOT NULL,
    held_tokens INTEGER NOT NULL,
    told_money  INTEGER NOT NULL DEFAULT -1,
    told_tokens INTEGER NOT NULL DEFAULT -1,
    PRIMARY KEY (home, id)
) WITHOUT ROWID;
INSERT INTO account (id, at, money, tokens, held_money, held_tokens, told_money, told_tokens) SELECT id, at, money,
tokens, held_money, held_tokens, told_money, told_tokens FROM before;
DROP TABLE before;
CREATE INDEX account_by_time ON account (at);
ALTER TABLE cool_down RENAME TO before;
CREATE TABLE cool_down (
    home        INTEGER NOT NULL DEFAULT 1,
    provider    TEXT NOT NULL,
    credential  TEXT NOT NULL,
    model       TEXT NOT NULL,
    mark        TEXT NOT NULL,
    until       REAL NOT NULL,
    reason      TEXT NOT NULL,
    PRIMARY KEY (home, provider, credential, model)
) WITHOUT ROWID;
INSERT INTO cool_down (provider, credential, model, mark, until, reason) SELECT provider, credential, model, mark,
until, reason FROM before;
DROP TABLE before;
ALTER TABLE learning_pace RENAME TO before;
CREATE TABLE learning_pace (
    home        INTEGER NOT NULL DEFAULT 1,
    principal   TEXT NOT NULL,
    what        TEXT NOT NULL,
    empty       INTEGER NOT NULL,
    PRIMARY KEY (home, principal, what)
) WITHOUT ROWID;
INSERT INTO learning_pace (principal, what, empty) SELECT principal, what, empty FROM before;
DROP TABLE before;
ALTER TABLE learning_proposal RENAME TO before;
CREATE TABLE learning_proposal (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    home        INTEGER NOT NULL DEFAULT 1,
    why         TEXT NOT NULL,
    state       TEXT NOT NULL,
    kind        TEXT NOT NULL,
    item        TEXT NOT NULL,
    action      TEXT NOT NULL,
    call        TEXT NOT NULL,
    key         TEXT NOT NULL,
    job         TEXT NOT NULL,
    session     TEXT NOT NULL,
    principal   TEXT NOT NULL,
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    evidence    TEXT NOT NULL,
    taint       TEXT NOT NULL,
    base        BLOB,
    at          REAL NOT NULL,
    expires     REAL NOT NULL,
    ended       REAL,
    version     INTEGER,
    UNIQUE (home, key)
);
INSERT INTO sqlite_sequence SELECT 'learning_proposal', seq FROM sqlite_sequence WHERE name = 'before';
INSERT INTO learning_proposal (id, why, state, kind, item, action, call, key, job, session, principal, first, last,
evidence, taint, base, at, expires, ended, version) SELECT id, why, state, kind, item, action, call, key, job,
session, principal, first, last, evidence, taint, base, at, expires, ended, version FROM before;
DROP TABLE before;
CREATE INDEX learning_proposal_open ON learning_proposal (id) WHERE ended IS NULL;
ALTER TABLE learning_swept RENAME TO before;
CREATE TABLE learning_swept (
    home        INTEGER NOT NULL DEFAULT 1,
    version     INTEGER NOT NULL,
    PRIMARY KEY (home)
) WITHOUT ROWID;
INSERT INTO learning_swept (version) SELECT version FROM before;
DROP TABLE before;

DROP INDEX session_by_principal;
CREATE INDEX session_by_principal ON session (home, principal, updated) WHERE deleted IS NULL;
DROP INDEX session_by_time;
CREATE INDEX session_by_time ON session (home, updated) WHERE deleted IS NULL;
DROP INDEX usage_by_time;
CREATE INDEX usage_by_time ON usage (home, at);
DROP INDEX usage_by_day;
CREATE INDEX usage_by_day ON usage (home, day);
DROP INDEX usage_by_job;
CREATE INDEX usage_by_job ON usage (home, job) WHERE job <> '';
DROP INDEX version_by_item;
CREATE INDEX version_by_item ON version (home, kind, item, id);
DROP INDEX version_follows;
CREATE UNIQUE INDEX version_follows ON version (home, kind, item, follows)
WHERE follows IS NOT NULL AND state <> 'dropped';
DROP INDEX learning_job_open;
CREATE INDEX learning_job_open ON learning_job (home, created) WHERE ended IS NULL;
DROP INDEX learning_job_by_time;
CREATE INDEX learning_job_by_time ON learning_job (home, created, id);
DROP INDEX learning_lesson_open;
CREATE UNIQUE INDEX learning_lesson_open ON learning_lesson (home, kind, item, line) WHERE ended IS NULL;
DROP INDEX learning_lesson_due;
CREATE INDEX learning_lesson_due ON learning_lesson (home, next) WHERE ended IS NULL;
DROP INDEX known_fact_in_force;
CREATE UNIQUE INDEX known_fact_in_force ON known_fact (home, space, hash) WHERE retracted IS NULL;
DROP INDEX known_fact_change_by_key;
CREATE UNIQUE INDEX known_fact_change_by_key ON known_fact_change (home, key) WHERE key <> '';

-- A run by its first and its last event (0: it goes on), how it ended, or the question that it waits with.
CREATE TABLE run (
    session  TEXT NOT NULL REFERENCES session (id),
    run      TEXT NOT NULL,
    first    INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    status   TEXT NOT NULL,
    question TEXT NOT NULL,
    PRIMARY KEY (session, run)
) WITHOUT ROWID;
-- The event of the log that a message became; NULL until then, and in rows that are older than this.
ALTER TABLE inbox ADD COLUMN number INTEGER;

-- What a session began with, so that it can be judged later what an item brought.
CREATE TABLE episode (
    session   TEXT PRIMARY KEY REFERENCES session (id),
    home      INTEGER NOT NULL,
    principal TEXT NOT NULL,
    model     TEXT NOT NULL,
    at        REAL NOT NULL
) WITHOUT ROWID;
-- The skills (JSON) that its prompt named, and those of them that were read. Their versions are those of that time.
CREATE TABLE exposure (
    session  TEXT PRIMARY KEY REFERENCES session (id),
    eligible TEXT NOT NULL,
    read     TEXT NOT NULL
) WITHOUT ROWID;

-- The machines on which workers were, by name, with the boot that was seen last.
CREATE TABLE machine (
    id    TEXT PRIMARY KEY,
    boot  TEXT NOT NULL,
    since REAL NOT NULL,
    seen  REAL NOT NULL
) WITHOUT ROWID;
ALTER TABLE worker ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE worker ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE worker ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE worker ADD COLUMN words INTEGER NOT NULL DEFAULT 1;

-- `head` is the number of the log's last entry, by which every writer is fenced; `machine`: it alone may go on (NULL: any),
-- `words` the highest vocabulary of events in the log: who knows less does not claim it.
ALTER TABLE lane ADD COLUMN home INTEGER NOT NULL DEFAULT 1;
ALTER TABLE lane ADD COLUMN head INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lane ADD COLUMN machine TEXT;
ALTER TABLE lane ADD COLUMN words INTEGER NOT NULL DEFAULT 1;
UPDATE lane SET head = coalesce((SELECT max(number) FROM entry WHERE entry.session = lane.id), 0);
DROP INDEX lane_ready;
CREATE INDEX lane_ready ON lane (home, queue, queued) WHERE owner IS NULL AND pending > 0;
