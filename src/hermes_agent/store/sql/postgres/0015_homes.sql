-- The homes that keep their rows here: where each is, and since when.
CREATE TABLE home (
    id     TEXT PRIMARY KEY,
    host   TEXT NOT NULL,
    folder TEXT NOT NULL,
    since  double precision NOT NULL
);

-- `home` made the version (empty: the only one that there is). It follows the version of that number (0: none), which no
-- other one does: two homes never change the same content; NULL in rows that are older than this. `folder` is the category
-- that a skill stands in. A `private` version is of that home's own copy of something from elsewhere: no other shows it.
ALTER TABLE version ADD COLUMN home TEXT NOT NULL DEFAULT '';
ALTER TABLE version ADD COLUMN follows bigint;
ALTER TABLE version ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE version ADD COLUMN private bigint NOT NULL DEFAULT 0;
UPDATE version SET private = 1
WHERE author = 'hub' AND action IN ('install', 'installed', 'uninstall', 'restore', 'put back');
CREATE UNIQUE INDEX version_follows ON version (kind, item, follows)
WHERE follows IS NOT NULL AND state <> 'dropped';

-- The server's timeline, another one after each promotion, and since when it is known here.
CREATE FUNCTION current_timeline() RETURNS bigint LANGUAGE sql AS
$$SELECT CAST(CAST('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS bit(32)) AS bigint)$$;
CREATE TABLE timeline (
    number bigint NOT NULL,
    since  timestamptz NOT NULL
);
INSERT INTO timeline VALUES (current_timeline(), '-infinity');

-- A promoted standby may have lost claims: no epoch that was given out before may be given out again.
CREATE FUNCTION raise_epoch() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN NEW.epoch := greatest(NEW.epoch, (current_timeline() - 1) << 32); RETURN NEW; END$$;
CREATE TRIGGER lane_claimed BEFORE UPDATE OF epoch ON lane
FOR EACH ROW WHEN (NEW.epoch > OLD.epoch) EXECUTE FUNCTION raise_epoch();
CREATE TRIGGER outbox_claimed BEFORE INSERT OR UPDATE OF epoch ON outbox
FOR EACH ROW EXECUTE FUNCTION raise_epoch();
CREATE TRIGGER learning_job_claimed BEFORE UPDATE OF epoch ON learning_job
FOR EACH ROW WHEN (NEW.epoch > OLD.epoch) EXECUTE FUNCTION raise_epoch();
