-- Facts beside the notes, each kept once in a `space` (a person's) while it is in force. `terms` are its words as search
-- sees them, `vector` is what the memory made of them, `names` (JSON) what it is about. `first` and `last` are the numbers
-- of the session's events that it came from, `checked` is when it was last found right or wrong.
CREATE TABLE known_fact (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    space     TEXT NOT NULL,
    hash      TEXT NOT NULL,
    text      TEXT NOT NULL,
    names     TEXT NOT NULL,
    terms     TEXT NOT NULL,
    vector    BLOB NOT NULL,
    trust     REAL NOT NULL,
    author    TEXT NOT NULL,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    added     REAL NOT NULL,
    checked   REAL NOT NULL,
    retracted REAL
);
CREATE UNIQUE INDEX known_fact_in_force ON known_fact (space, hash) WHERE retracted IS NULL;
-- Can be made again from `known_fact`, whose text never changes and whose rows are never removed.
CREATE VIRTUAL TABLE known_fact_words USING fts5(terms, content='known_fact', content_rowid='id', tokenize='ascii');
CREATE TRIGGER known_fact_added AFTER INSERT ON known_fact BEGIN
    INSERT INTO known_fact_words (rowid, terms) VALUES (new.id, new.terms);
END;

-- Every change of a fact: its trust before and after, NULL where it was not in force. Nothing is removed.
CREATE TABLE known_fact_change (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    fact      INTEGER NOT NULL REFERENCES known_fact (id),
    at        REAL NOT NULL,
    action    TEXT NOT NULL,
    before    REAL,
    after     REAL,
    author    TEXT NOT NULL,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    key       TEXT NOT NULL,
    undoes    INTEGER
);
CREATE INDEX known_fact_change_by_fact ON known_fact_change (fact);
CREATE UNIQUE INDEX known_fact_change_by_key ON known_fact_change (key) WHERE key <> '';
CREATE UNIQUE INDEX known_fact_change_by_undone ON known_fact_change (undoes) WHERE undoes IS NOT NULL;
