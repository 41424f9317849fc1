-- The homes that keep their rows here: where each is, and since when.
CREATE TABLE home (
    id     TEXT PRIMARY KEY,
    host   TEXT NOT NULL,
    folder TEXT NOT NULL,
    since  REAL NOT NULL
) WITHOUT ROWID;

-- `home` made the version (empty: the only one that there is). It follows the version of that number (0: none), which no
-- other one does: two homes never change the same content; NULL in rows that are older than this. `folder` is the category
-- that a skill stands in. A `private` version is of that home's own copy of something from elsewhere: no other shows it.
ALTER TABLE version ADD COLUMN home TEXT NOT NULL DEFAULT '';
ALTER TABLE version ADD COLUMN follows INTEGER;
ALTER TABLE version ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE version ADD COLUMN private INTEGER NOT NULL DEFAULT 0;
UPDATE version SET private = 1
WHERE author = 'hub' AND action IN ('install', 'installed', 'uninstall', 'restore', 'put back');
CREATE UNIQUE INDEX version_follows ON version (kind, item, follows)
WHERE follows IS NOT NULL AND state <> 'dropped';
