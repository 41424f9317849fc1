-- What a person wants reached, over turns and sessions; `principal` is whose it is (`owner`, or the key of a principal),
-- `session` the one that pursues it, `due` when a waiting goal is looked at again,
-- `news` 1 while its person was not told of something, `body` the rest (JSON).
CREATE TABLE goal (
    home      INTEGER NOT NULL,
    id        TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    state     TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    round     INTEGER NOT NULL,
    due       REAL,
    news      INTEGER NOT NULL,
    changed   REAL NOT NULL,
    ended     REAL,
    body      TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX goal_open ON goal (home, principal) WHERE ended IS NULL;
CREATE INDEX goal_news ON goal (home) WHERE news = 1;
CREATE INDEX goal_by_session ON goal (session) WHERE ended IS NULL;

-- The check that follows a run's end; `owner` and `epoch` are its lease, `queue` that of the session's lane, `after` the
-- log's last event before the run.
CREATE TABLE goal_round (
    id       TEXT PRIMARY KEY,
    home     INTEGER NOT NULL,
    goal     TEXT NOT NULL,
    revision INTEGER NOT NULL,
    round    INTEGER NOT NULL,
    session  TEXT NOT NULL,
    run      TEXT NOT NULL,
    after    INTEGER NOT NULL,
    queue    TEXT NOT NULL,
    state    TEXT NOT NULL,
    owner    TEXT,
    epoch    INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    created  REAL NOT NULL,
    ended    REAL,
    note     TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX goal_round_open ON goal_round (created) WHERE ended IS NULL;

-- Receipts: what each criterion gave in a round.
CREATE TABLE goal_check (
    home        INTEGER NOT NULL,
    round       TEXT NOT NULL,
    number      INTEGER NOT NULL,
    goal        TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    run         TEXT NOT NULL,
    criterion   TEXT NOT NULL,
    kind        TEXT NOT NULL,
    at          REAL NOT NULL,
    seconds     REAL NOT NULL,
    exit_code   INTEGER,
    verdict     TEXT NOT NULL,
    evidence    TEXT NOT NULL,
    output_hash TEXT NOT NULL,
    PRIMARY KEY (home, round, number)
) WITHOUT ROWID;
CREATE INDEX goal_check_by_goal ON goal_check (home, goal, at);
