-- Scheduled jobs: what each does (JSON), how far its instants are planned, and when that is looked at again.
CREATE TABLE cron_job (
    id         TEXT PRIMARY KEY,
    home       INTEGER NOT NULL,
    principal  TEXT NOT NULL,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    state      TEXT NOT NULL,
    why        TEXT NOT NULL,
    remaining  INTEGER,
    planned_to INTEGER NOT NULL,
    look_at    REAL NOT NULL,
    told       REAL NOT NULL,
    version    INTEGER NOT NULL,
    created    REAL NOT NULL,
    changed    REAL NOT NULL,
    UNIQUE (home, principal, name)
) WITHOUT ROWID;
CREATE INDEX cron_job_look ON cron_job (home, look_at) WHERE state = 'on';
-- Each instant of a job, made in advance. `due` (seconds since 1970) is its identity; it begins at `ready_at`, and is missed
-- after `late_at`. `counts` is how many instants the row stands for, `letters` the keys of its rows in the outbox (JSON).
CREATE TABLE cron_instant (
    id       TEXT PRIMARY KEY,
    home     INTEGER NOT NULL,
    job      TEXT NOT NULL,
    due      INTEGER NOT NULL,
    ready_at REAL NOT NULL,
    late_at  REAL NOT NULL,
    queues   INTEGER NOT NULL,
    state    TEXT NOT NULL,
    why      TEXT NOT NULL,
    counts   INTEGER NOT NULL,
    owner    TEXT,
    epoch    INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    tries    INTEGER NOT NULL,
    note     TEXT NOT NULL,
    session  TEXT NOT NULL,
    started  REAL,
    ended    REAL,
    words    TEXT NOT NULL,
    letters  TEXT NOT NULL,
    filed    INTEGER NOT NULL,
    UNIQUE (job, due)
) WITHOUT ROWID;
CREATE INDEX cron_instant_ready ON cron_instant (home, ready_at, id) WHERE ended IS NULL;
CREATE INDEX cron_instant_open ON cron_instant (job) WHERE ended IS NULL;
CREATE INDEX cron_instant_session ON cron_instant (session) WHERE ended IS NULL AND session <> '';
CREATE INDEX cron_instant_unfiled ON cron_instant (home) WHERE filed = 0 AND ended IS NOT NULL;
CREATE INDEX cron_instant_running ON cron_instant (home) WHERE state = 'running' AND ended IS NULL;
