-- Constraints in what was learned, each a line of a skill or an entry of the notes: `probe` is the check that retires it
-- when it passes, `next` when it is looked at again. What a person prefers has neither probe nor end (`expires`).
CREATE TABLE learning_lesson (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    sort      TEXT NOT NULL,
    kind      TEXT NOT NULL,
    item      TEXT NOT NULL,
    line      TEXT NOT NULL,
    probe     TEXT NOT NULL,
    version   INTEGER NOT NULL,
    session   TEXT NOT NULL,
    principal TEXT NOT NULL,
    at        REAL NOT NULL,
    expires   REAL,
    next      REAL NOT NULL,
    state     TEXT NOT NULL,
    ended     REAL,
    retired   INTEGER
);
CREATE UNIQUE INDEX learning_lesson_open ON learning_lesson (kind, item, line) WHERE ended IS NULL;
CREATE INDEX learning_lesson_due ON learning_lesson (next) WHERE ended IS NULL;

-- Up to which version the ledger was looked through for constraints; one row.
CREATE TABLE learning_swept (
    one     INTEGER PRIMARY KEY,
    version INTEGER NOT NULL
);
INSERT INTO learning_swept (one, version) VALUES (1, 0);
