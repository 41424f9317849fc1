-- What a conversation brought since it was reviewed last: rounds of tools, and messages of people.
CREATE TABLE learning_count (
    session    TEXT PRIMARY KEY,
    iterations INTEGER NOT NULL,
    turns      INTEGER NOT NULL
) WITHOUT ROWID;

-- How many reviews in a row kept nothing, by person and by what was reviewed.
CREATE TABLE learning_pace (
    principal TEXT NOT NULL,
    what      TEXT NOT NULL,
    empty     INTEGER NOT NULL,
    PRIMARY KEY (principal, what)
) WITHOUT ROWID;

-- Work on what is learned that goes on beside conversations; `owner` and `epoch` are its lease. `told` is 1 once the
-- conversation was told what came of it.
CREATE TABLE learning_job (
    id        TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    session   TEXT NOT NULL,
    principal TEXT NOT NULL,
    what      TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    state     TEXT NOT NULL,
    owner     TEXT,
    epoch     INTEGER NOT NULL,
    attempts  INTEGER NOT NULL,
    created   REAL NOT NULL,
    ended     REAL,
    calls     INTEGER NOT NULL,
    input     INTEGER NOT NULL,
    cached    INTEGER NOT NULL,
    output    INTEGER NOT NULL,
    cost      REAL,
    kept      INTEGER NOT NULL,
    waiting   INTEGER NOT NULL,
    refused   INTEGER NOT NULL,
    told      INTEGER NOT NULL,
    note      TEXT NOT NULL
);
CREATE INDEX learning_job_open ON learning_job (created) WHERE ended IS NULL;
CREATE INDEX learning_job_by_session ON learning_job (session);
CREATE INDEX learning_job_by_time ON learning_job (created, id);

-- What would be learned and waits: for the owner's yes, or in quarantine. `call` is the tool call as JSON; `version` is
-- what it became.
CREATE TABLE learning_proposal (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    why       TEXT NOT NULL,
    state     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    item      TEXT NOT NULL,
    action    TEXT NOT NULL,
    call      TEXT NOT NULL,
    key       TEXT NOT NULL UNIQUE,
    job       TEXT NOT NULL,
    session   TEXT NOT NULL,
    principal TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    evidence  TEXT NOT NULL,
    taint     TEXT NOT NULL,
    base      BLOB,
    at        REAL NOT NULL,
    expires   REAL NOT NULL,
    ended     REAL,
    version   INTEGER
);
CREATE INDEX learning_proposal_open ON learning_proposal (id) WHERE ended IS NULL;

-- The conversations, besides the one that it came from, that bear out an item: `skill:NAME`, `memory:FILE`, `p12`.
CREATE TABLE learning_support (
    item    TEXT NOT NULL,
    session TEXT NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (item, session)
) WITHOUT ROWID;
CREATE INDEX learning_support_by_session ON learning_support (session);
CREATE INDEX version_by_session ON version (session, author) WHERE session <> '';
