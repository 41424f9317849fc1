-- Facts beside the notes, each kept once in a `space` (a person's) while it is in force. `terms` are its words as search
-- sees them, `vector` is what the memory made of them, `names` (JSON) what it is about. `first` and `last` are the numbers
-- of the session's events that it came from, `checked` is when it was last found right or wrong.
CREATE TABLE known_fact (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space     TEXT NOT NULL,
    hash      TEXT NOT NULL,
    text      TEXT NOT NULL,
    names     TEXT NOT NULL,
    terms     TEXT NOT NULL,
    tsv       tsvector NOT NULL,
    vector    bytea NOT NULL,
    trust     double precision NOT NULL,
    author    TEXT NOT NULL,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    added     double precision NOT NULL,
    checked   double precision NOT NULL,
    retracted double precision
);
CREATE UNIQUE INDEX known_fact_in_force ON known_fact (space, hash) WHERE retracted IS NULL;
CREATE INDEX known_fact_by_tsv ON known_fact USING gin (tsv);

-- Every change of a fact: its trust before and after, NULL where it was not in force. Nothing is removed.
CREATE TABLE known_fact_change (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fact      bigint NOT NULL REFERENCES known_fact (id),
    at        double precision NOT NULL,
    action    TEXT NOT NULL,
    before    double precision,
    after     double precision,
    author    TEXT NOT NULL,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    key       TEXT NOT NULL,
    undoes    bigint
);
CREATE INDEX known_fact_change_by_fact ON known_fact_change (fact);
CREATE UNIQUE INDEX known_fact_change_by_key ON known_fact_change (key) WHERE key <> '';
CREATE UNIQUE INDEX known_fact_change_by_undone ON known_fact_change (undoes) WHERE undoes IS NOT NULL;
