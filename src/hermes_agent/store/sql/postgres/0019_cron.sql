-- Scheduled jobs: what each does (JSON), how far its instants are planned, and when that is looked at again.
CREATE TABLE cron_job (
    id         TEXT PRIMARY KEY,
    home       bigint NOT NULL,
    principal  TEXT NOT NULL,
    name       TEXT NOT NULL,
    body       TEXT NOT NULL,
    state      TEXT NOT NULL,
    why        TEXT NOT NULL,
    remaining  bigint,
    planned_to bigint NOT NULL,
    look_at    double precision NOT NULL,
    told       double precision NOT NULL,
    version    bigint NOT NULL,
    created    double precision NOT NULL,
    changed    double precision NOT NULL,
    UNIQUE (home, principal, name)
);
CREATE INDEX cron_job_look ON cron_job (home, look_at) WHERE state = 'on';
-- Each instant of a job, made in advance. `due` (seconds since 1970) is its identity; it begins at `ready_at`, and is missed
-- after `late_at`. `counts` is how many instants the row stands for, `letters` the keys of its rows in the outbox (JSON).
CREATE TABLE cron_instant (
    id       TEXT PRIMARY KEY,
    home     bigint NOT NULL,
    job      TEXT NOT NULL,
    due      bigint NOT NULL,
    ready_at double precision NOT NULL,
    late_at  double precision NOT NULL,
    queues   bigint NOT NULL,
    state    TEXT NOT NULL,
    why      TEXT NOT NULL,
    counts   bigint NOT NULL,
    owner    TEXT,
    epoch    bigint NOT NULL,
    attempts bigint NOT NULL,
    tries    bigint NOT NULL,
    note     TEXT NOT NULL,
    session  TEXT NOT NULL,
    started  double precision,
    ended    double precision,
    words    TEXT NOT NULL,
    letters  TEXT NOT NULL,
    filed    bigint NOT NULL,
    UNIQUE (job, due)
);
CREATE INDEX cron_instant_ready ON cron_instant (home, ready_at, id) WHERE ended IS NULL;
CREATE INDEX cron_instant_open ON cron_instant (job) WHERE ended IS NULL;
CREATE INDEX cron_instant_session ON cron_instant (session) WHERE ended IS NULL AND session <> '';
CREATE INDEX cron_instant_unfiled ON cron_instant (home) WHERE filed = 0 AND ended IS NOT NULL;
CREATE INDEX cron_instant_running ON cron_instant (home) WHERE state = 'running' AND ended IS NULL;
