-- What a person wants reached, over turns and sessions; `principal` is whose it is (`owner`, or the key of a principal),
-- `session` the one that pursues it, `due` when a waiting goal is looked at again,
-- `news` 1 while its person was not told of something, `body` the rest (JSON).
CREATE TABLE goal (
    home      bigint NOT NULL,
    id        TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    state     TEXT NOT NULL,
    revision  bigint NOT NULL,
    round     bigint NOT NULL,
    due       double precision,
    news      bigint NOT NULL,
    changed   double precision NOT NULL,
    ended     double precision,
    body      TEXT NOT NULL
);
CREATE INDEX goal_open ON goal (home, principal) WHERE ended IS NULL;
CREATE INDEX goal_news ON goal (home) WHERE news = 1;
CREATE INDEX goal_by_session ON goal (session) WHERE ended IS NULL;

-- The check that follows a run's end; `owner` and `epoch` are its lease, `queue` that of the session's lane, `after` the
-- log's last event before the run.
CREATE TABLE goal_round (
    id       TEXT PRIMARY KEY,
    home     bigint NOT NULL,
    goal     TEXT NOT NULL,
    revision bigint NOT NULL,
    round    bigint NOT NULL,
    session  TEXT NOT NULL,
    run      TEXT NOT NULL,
    after    bigint NOT NULL,
    queue    TEXT NOT NULL,
    state    TEXT NOT NULL,
    owner    TEXT,
    epoch    bigint NOT NULL,
    attempts bigint NOT NULL,
    created  double precision NOT NULL,
    ended    double precision,
    note     TEXT NOT NULL
);
CREATE INDEX goal_round_open ON goal_round (created) WHERE ended IS NULL;

-- Receipts: what each criterion gave in a round.
CREATE TABLE goal_check (
    home        bigint NOT NULL,
    round       TEXT NOT NULL,
    number      bigint NOT NULL,
    goal        TEXT NOT NULL,
    revision    bigint NOT NULL,
    run         TEXT NOT NULL,
    criterion   TEXT NOT NULL,
    kind        TEXT NOT NULL,
    at          double precision NOT NULL,
    seconds     double precision NOT NULL,
    exit_code   bigint,
    verdict     TEXT NOT NULL,
    evidence    TEXT NOT NULL,
    output_hash TEXT NOT NULL,
    PRIMARY KEY (home, round, number)
);
CREATE INDEX goal_check_by_goal ON goal_check (home, goal, at);
