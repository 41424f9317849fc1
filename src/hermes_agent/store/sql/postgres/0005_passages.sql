-- What is searched: runs of messages of a session as one document each, made from the log; `indexed` says how far.
DROP TABLE words;
DROP TEXT SEARCH CONFIGURATION hermes;
DROP TEXT SEARCH DICTIONARY hermes_stem;
CREATE TABLE passage (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session    TEXT NOT NULL REFERENCES session (id),
    first      bigint NOT NULL,
    last       bigint NOT NULL,
    began      double precision NOT NULL,
    ended      double precision NOT NULL,
    messages   bigint NOT NULL,
    characters bigint NOT NULL,
    tsv        tsvector NOT NULL
);
CREATE INDEX passage_by_session ON passage (session, last);
CREATE INDEX passage_by_time ON passage (ended);
CREATE INDEX passage_by_tsv ON passage USING gin (tsv);
UPDATE indexed SET xid = '0', entry = 0;
-- The words of a deleted session go with it.
CREATE FUNCTION forget_passages() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN DELETE FROM passage WHERE session = NEW.id; RETURN NULL; END';
CREATE TRIGGER session_forgotten AFTER UPDATE OF deleted ON session
FOR EACH ROW WHEN (NEW.deleted IS NOT NULL) EXECUTE FUNCTION forget_passages();
