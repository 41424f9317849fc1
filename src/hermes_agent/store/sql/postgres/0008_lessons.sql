-- Constraints in what was learned, each a line of a skill or an entry of the notes: `probe` is the check that retires it
-- when it passes, `next` when it is looked at again. What a person prefers has neither probe nor end (`expires`).
CREATE TABLE learning_lesson (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sort      TEXT NOT NULL,
    kind      TEXT NOT NULL,
    item      TEXT NOT NULL,
    line      TEXT NOT NULL,
    probe     TEXT NOT NULL,
    version   bigint NOT NULL,
    session   TEXT NOT NULL,
    principal TEXT NOT NULL,
    at        double precision NOT NULL,
    expires   double precision,
    next      double precision NOT NULL,
    state     TEXT NOT NULL,
    ended     double precision,
    retired   bigint
);
CREATE UNIQUE INDEX learning_lesson_open ON learning_lesson (kind, item, line) WHERE ended IS NULL;
CREATE INDEX learning_lesson_due ON learning_lesson (next) WHERE ended IS NULL;

-- Up to which version the ledger was looked through for constraints; one row.
CREATE TABLE learning_swept (
    one     bigint PRIMARY KEY,
    version bigint NOT NULL
);
INSERT INTO learning_swept (one, version) VALUES (1, 0);
