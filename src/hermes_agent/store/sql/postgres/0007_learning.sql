-- What a conversation brought since it was reviewed last: rounds of tools, and messages of people.
CREATE TABLE learning_count (
    session    TEXT PRIMARY KEY,
    iterations bigint NOT NULL,
    turns      bigint NOT NULL
);

-- How many reviews in a row kept nothing, by person and by what was reviewed.
CREATE TABLE learning_pace (
    principal TEXT NOT NULL,
    what      TEXT NOT NULL,
    empty     bigint NOT NULL,
    PRIMARY KEY (principal, what)
);

-- Work on what is learned that goes on beside conversations; `owner` and `epoch` are its lease. `told` is 1 once the
-- conversation was told what came of it.
CREATE TABLE learning_job (
    id        TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    session   TEXT NOT NULL,
    principal TEXT NOT NULL,
    what      TEXT NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    state     TEXT NOT NULL,
    owner     TEXT,
    epoch     bigint NOT NULL,
    attempts  bigint NOT NULL,
    created   double precision NOT NULL,
    ended     double precision,
    calls     bigint NOT NULL,
    input     bigint NOT NULL,
    cached    bigint NOT NULL,
    output    bigint NOT NULL,
    cost      double precision,
    kept      bigint NOT NULL,
    waiting   bigint NOT NULL,
    refused   bigint NOT NULL,
    told      bigint NOT NULL,
    note      TEXT NOT NULL
);
CREATE INDEX learning_job_open ON learning_job (created) WHERE ended IS NULL;
CREATE INDEX learning_job_by_session ON learning_job (session);
CREATE INDEX learning_job_by_time ON learning_job (created, id);

-- What would be learned and waits: for the owner's yes, or in quarantine. `call` is the tool call as JSON; `version` is
-- what it became.
CREATE TABLE learning_proposal (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    evidence  TEXT NOT NULL,
    taint     TEXT NOT NULL,
    base      bytea,
    at        double precision NOT NULL,
    expires   double precision NOT NULL,
    ended     double precision,
    version   bigint
);
CREATE INDEX learning_proposal_open ON learning_proposal (id) WHERE ended IS NULL;

-- The conversations, besides the one that it came from, that bear out an item: `skill:NAME`, `memory:FILE`, `p12`.
CREATE TABLE learning_support (
    item    TEXT NOT NULL,
    session TEXT NOT NULL,
    at      double precision NOT NULL,
    PRIMARY KEY (item, session)
);
CREATE INDEX learning_support_by_session ON learning_support (session);
CREATE INDEX version_by_session ON version (session, author) WHERE session <> '';
