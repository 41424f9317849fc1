-- Whose data a row is, where a row is found by something from outside: rows of before are of home 1. What is keyed by the
-- id of a session belongs to the session's home.
ALTER TABLE version RENAME COLUMN home TO machine;
ALTER TABLE session ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE usage ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE version ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE pairing_failure ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE learning_job ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE learning_support ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE learning_lesson ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE known_fact ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE known_fact_change ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE home ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE current_session ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT current_session_pkey, ADD PRIMARY KEY (home, conversation);
ALTER TABLE inbox ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT inbox_source_source_id_key, ADD UNIQUE (home, source, source_id);
ALTER TABLE outbox ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT outbox_key_key, ADD UNIQUE (home, key);
ALTER TABLE pairing ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT pairing_pkey, ADD PRIMARY KEY (home, channel, user_id);
ALTER TABLE paired ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT paired_pkey, ADD PRIMARY KEY (home, channel, user_id);
ALTER TABLE chat_fact ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT chat_fact_pkey, ADD PRIMARY KEY (home, place, name);
ALTER TABLE account ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT account_pkey, ADD PRIMARY KEY (home, id);
ALTER TABLE cool_down ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT cool_down_pkey, ADD PRIMARY KEY (home, provider, credential, model);
ALTER TABLE learning_pace ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT learning_pace_pkey, ADD PRIMARY KEY (home, principal, what);
ALTER TABLE learning_proposal ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT learning_proposal_key_key, ADD UNIQUE (home, key);
ALTER TABLE learning_swept ADD COLUMN home bigint NOT NULL DEFAULT 1, DROP CONSTRAINT learning_swept_pkey, ADD PRIMARY KEY (home);

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

DROP INDEX outbox_due;
CREATE INDEX outbox_due ON outbox (home, place, id) WHERE due = 1;
DROP INDEX outbox_ready;
CREATE INDEX outbox_ready ON outbox (home, channel, id) WHERE due = 1 AND owner IS NULL;
ALTER TABLE learning_swept DROP COLUMN one;

-- Rows that change often stay on their page, and are cleared away by number, not by share.
ALTER TABLE lane SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE outbox SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE inbox SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE account SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- A run by its first and its last event (0: it goes on), how it ended, or the question that it waits with.
CREATE TABLE run (
    session  TEXT NOT NULL REFERENCES session (id),
    run      TEXT NOT NULL,
    first    bigint NOT NULL,
    last     bigint NOT NULL,
    status   TEXT NOT NULL,
    question TEXT NOT NULL,
    PRIMARY KEY (session, run)
);
-- The event of the log that a message became; NULL until then, and in rows that are older than this.
ALTER TABLE inbox ADD COLUMN number bigint;

-- What a session began with, so that it can be judged later what an item brought.
CREATE TABLE episode (
    session   TEXT PRIMARY KEY REFERENCES session (id),
    home      bigint NOT NULL,
    principal TEXT NOT NULL,
    model     TEXT NOT NULL,
    at        double precision NOT NULL
);
-- The skills (JSON) that its prompt named, and those of them that were read. Their versions are those of that time.
CREATE TABLE exposure (
    session  TEXT PRIMARY KEY REFERENCES session (id),
    eligible TEXT NOT NULL,
    read     TEXT NOT NULL
);

-- The machines on which workers were, by name, with the boot that was seen last.
CREATE TABLE machine (
    id    TEXT PRIMARY KEY,
    boot  TEXT NOT NULL,
    since double precision NOT NULL,
    seen  double precision NOT NULL
);
ALTER TABLE worker ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE worker ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE worker ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE worker ADD COLUMN words bigint NOT NULL DEFAULT 1;

-- `head` is the number of the log's last entry, by which every writer is fenced; `machine`: it alone may go on (NULL: any),
-- `words` the highest vocabulary of events in the log: who knows less does not claim it.
ALTER TABLE lane ADD COLUMN home bigint NOT NULL DEFAULT 1;
ALTER TABLE lane ADD COLUMN head bigint NOT NULL DEFAULT 0;
ALTER TABLE lane ADD COLUMN machine TEXT;
ALTER TABLE lane ADD COLUMN words bigint NOT NULL DEFAULT 1;
UPDATE lane SET head = coalesce((SELECT max(number) FROM entry WHERE entry.session = lane.id), 0);
DROP INDEX lane_ready;
CREATE INDEX lane_ready ON lane (home, queue, queued) WHERE owner IS NULL AND pending > 0;
