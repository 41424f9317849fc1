-- What narrows the runs of a session in which nobody types (JSON).
CREATE TABLE mandate (
    session TEXT PRIMARY KEY REFERENCES session (id),
    home    bigint NOT NULL,
    body    TEXT NOT NULL
);
