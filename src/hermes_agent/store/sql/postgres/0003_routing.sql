-- What is not asked for a while: an empty credential or model means every one.
CREATE TABLE cool_down (
    provider   TEXT NOT NULL,
    credential TEXT NOT NULL,
    model      TEXT NOT NULL,
    mark       TEXT NOT NULL,
    until      double precision NOT NULL,
    reason     TEXT NOT NULL,
    PRIMARY KEY (provider, credential, model)
);

-- The name of the key that was used, and what the provider could have kept of the question.
ALTER TABLE usage ADD COLUMN credential TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN shape TEXT NOT NULL DEFAULT '';
