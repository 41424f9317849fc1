-- Boards, and their cards: `body` is the whole card (JSON), the other columns are what is looked for. `due` is 1 while
-- a dispatcher may claim it; `place` is a folder that one card at a time works in.
CREATE TABLE board (
    home    bigint NOT NULL,
    name    TEXT NOT NULL,
    created double precision NOT NULL,
    PRIMARY KEY (home, name)
);
CREATE TABLE card (
    id           TEXT PRIMARY KEY,
    home         bigint NOT NULL,
    board        TEXT NOT NULL,
    key          TEXT,
    title        TEXT NOT NULL,
    status       TEXT NOT NULL,
    assignee     TEXT NOT NULL,
    priority     bigint NOT NULL,
    tenant       TEXT NOT NULL,
    author       TEXT NOT NULL,
    parents_left bigint NOT NULL,
    due          bigint NOT NULL,
    ready_at     double precision NOT NULL,
    host         TEXT NOT NULL,
    place        TEXT NOT NULL,
    owner        TEXT,
    epoch        bigint NOT NULL,
    created      double precision NOT NULL,
    ended        double precision,
    cleaned      bigint NOT NULL,
    version      bigint NOT NULL,
    body         TEXT NOT NULL
);
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
);
CREATE INDEX card_children ON card_link (parent);

-- What happened to a card, comments among it; `number` is the version of the card that it made.
CREATE TABLE card_event (
    card   TEXT NOT NULL,
    number bigint NOT NULL,
    kind   TEXT NOT NULL,
    at     double precision NOT NULL,
    who    TEXT NOT NULL,
    text   TEXT NOT NULL,
    origin TEXT NOT NULL,
    PRIMARY KEY (card, number)
);

-- A process of a card, by the epoch of its claim; it is over once `ended` is set.
CREATE TABLE card_run (
    card      TEXT NOT NULL,
    epoch     bigint NOT NULL,
    home      bigint NOT NULL,
    kind      TEXT NOT NULL,
    profile   TEXT NOT NULL,
    host      TEXT NOT NULL,
    exec_id   TEXT NOT NULL,
    session   TEXT NOT NULL,
    started   double precision NOT NULL,
    seen      double precision NOT NULL,
    adopted   bigint NOT NULL,
    note      TEXT NOT NULL,
    reported  bigint NOT NULL,
    ended     double precision,
    outcome   TEXT NOT NULL,
    exit_code bigint,
    PRIMARY KEY (card, epoch)
);
CREATE INDEX card_run_open ON card_run (home, host) WHERE ended IS NULL;
CREATE INDEX card_run_recent ON card_run (home, profile, started);

CREATE TABLE card_file (
    card   TEXT NOT NULL,
    name   TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    bytes  bigint NOT NULL,
    path   TEXT NOT NULL,
    who    TEXT NOT NULL,
    PRIMARY KEY (card, name)
);

-- Who hears of a card (`what` is its id) or of a whole board (`board:NAME`).
CREATE TABLE card_watch (
    home         bigint NOT NULL,
    what         TEXT NOT NULL,
    conversation TEXT NOT NULL,
    PRIMARY KEY (home, what, conversation)
);

-- Which workers start processes of cards.
CREATE TABLE card_dispatcher (
    worker TEXT PRIMARY KEY,
    home   bigint NOT NULL
);
