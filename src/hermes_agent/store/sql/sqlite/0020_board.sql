-- Boards, and their cards: `body` is the whole card (JSON), the other columns are what is looked for. `due` is 1 while
-- a dispatcher may claim it; `place` is a folder that one card at a time works in.
CREATE TABLE board (
    home    INTEGER NOT NULL,
    name    TEXT NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (home, name)
) WITHOUT ROWID;
CREATE TABLE card (
    id           TEXT PRIMARY KEY,
    home         INTEGER NOT NULL,
    board        TEXT NOT NULL,
    key          TEXT,
    title        TEXT NOT NULL,
    status       TEXT NOT NULL,
    assignee     TEXT NOT NULL,
    priority     INTEGER NOT NULL,
    tenant       TEXT NOT NULL,
    author       TEXT NOT NULL,
    parents_left INTEGER NOT NULL,
    due          INTEGER NOT NULL,
    ready_at     REAL NOT NULL,
    host         TEXT NOT NULL,
    place        TEXT NOT NULL,
    owner        TEXT,
    epoch        INTEGER NOT NULL,
    created      REAL NOT NULL,
    ended        REAL,
    cleaned      INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    body         TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX card_key ON card (home, board, key) WHERE key IS NOT NULL;
CREATE INDEX card_listed ON card (home, board, status);
CREATE INDEX card_due ON card (home, priority, created, id) WHERE due = 1;
CREATE INDEX card_waiting ON card (home, ready_at) WHERE ready_at > 0;
CREATE INDEX card_owned ON card (owner) WHERE owner IS NOT NULL;
CREATE INDEX card_uncleaned ON card (home, ended) WHERE cleaned = 0 AND status = 'archived';

CREATE TABLE card_link (
    parent TEXT NOT NULL,
    child  TEXT NOT NULL,
    PRIMARY KEY (child, parent)
) WITHOUT ROWID;
CREATE INDEX card_children ON card_link (parent);

-- What happened to a card, comments among it; `number` is the version of the card that it made.
CREATE TABLE card_event (
    card   TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    at     REAL NOT NULL,
    who    TEXT NOT NULL,
    text   TEXT NOT NULL,
    origin TEXT NOT NULL,
    PRIMARY KEY (card, number)
) WITHOUT ROWID;

-- A process of a card, by the epoch of its claim; it is over once `ended` is set.
CREATE TABLE card_run (
    card      TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    home      INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    profile   TEXT NOT NULL,
    host      TEXT NOT NULL,
    exec_id   TEXT NOT NULL,
    session   TEXT NOT NULL,
    started   REAL NOT NULL,
    seen      REAL NOT NULL,
    adopted   INTEGER NOT NULL,
    note      TEXT NOT NULL,
    reported  INTEGER NOT NULL,
    ended     REAL,
    outcome   TEXT NOT NULL,
    exit_code INTEGER,
    PRIMARY KEY (card, epoch)
) WITHOUT ROWID;
CREATE INDEX card_run_open ON card_run (home, host) WHERE ended IS NULL;
CREATE INDEX card_run_recent ON card_run (home, profile, started);

CREATE TABLE card_file (
    card   TEXT NOT NULL,
    name   TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    bytes  INTEGER NOT NULL,
    path   TEXT NOT NULL,
    who    TEXT NOT NULL,
    PRIMARY KEY (card, name)
) WITHOUT ROWID;

-- Who hears of a card (`what` is its id) or of a whole board (`board:NAME`).
CREATE TABLE card_watch (
    home         INTEGER NOT NULL,
    what         TEXT NOT NULL,
    conversation TEXT NOT NULL,
    PRIMARY KEY (home, what, conversation)
) WITHOUT ROWID;

-- Which workers start processes of cards.
CREATE TABLE card_dispatcher (
    worker TEXT PRIMARY KEY,
    home   INTEGER NOT NULL
) WITHOUT ROWID;
