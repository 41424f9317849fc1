-- What narrows the runs of a session in which nobody types (JSON).
CREATE TABLE mandate (
    session TEXT PRIMARY KEY REFERENCES session (id),
    home    bigint NOT NULL,
    body    TEXT NOT NULL
);
-- The queue of lanes that a worker serves for everybody; empty: it works on its own sessions alone.
ALTER TABLE worker ADD COLUMN queue TEXT NOT NULL DEFAULT '';
