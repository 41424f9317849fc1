-- Sessions to which a call of another session (the parent) gave a goal. `delivery` says where the report goes: to the
-- call that waits for it, as mail to the parent, or to nobody.
CREATE TABLE child (
    session   TEXT PRIMARY KEY REFERENCES session (id),
    home      bigint NOT NULL,
    parent    TEXT NOT NULL,
    run       TEXT NOT NULL,
    call      TEXT NOT NULL,
    n         bigint NOT NULL,
    goal      TEXT NOT NULL,
    role      TEXT NOT NULL,
    isolation TEXT NOT NULL,
    folder    TEXT NOT NULL,
    branch    TEXT NOT NULL,
    base      TEXT NOT NULL,
    queue     TEXT NOT NULL,
    state     TEXT NOT NULL,
    delivery  TEXT NOT NULL,
    outcome   TEXT NOT NULL,
    report    TEXT NOT NULL,
    created   DOUBLE PRECISION NOT NULL,
    ended     DOUBLE PRECISION
);
CREATE INDEX child_by_parent ON child (parent, state);
