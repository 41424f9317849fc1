-- What is learned, one row for each change of a file that the model is shown: a note, a skill. Nothing is deleted.
-- `before` and `after` are contents by their hash, NULL where there was no file; `change` joins the rows of one act;
-- `first` and `last` are the numbers of the log's events that led to it; `key` is the call that asked for it.
-- `evidence`, `taint`, `cost` and `note` are for what a review learns.
CREATE TABLE version (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    change    TEXT NOT NULL,
    kind      TEXT NOT NULL,
    item      TEXT NOT NULL,
    at        double precision NOT NULL,
    author    TEXT NOT NULL,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    action    TEXT NOT NULL,
    state     TEXT NOT NULL,
    key       TEXT NOT NULL,
    before    TEXT,
    after     TEXT,
    undoes    bigint,
    evidence  TEXT,
    taint     TEXT,
    cost      double precision,
    note      TEXT
);
CREATE INDEX version_by_item ON version (kind, item, id);
CREATE INDEX version_by_key ON version (key) WHERE key <> '';
CREATE INDEX version_by_undone ON version (undoes) WHERE undoes IS NOT NULL;

CREATE TABLE version_body (
    hash TEXT PRIMARY KEY,
    body bytea NOT NULL
);
