-- `day` is the owner's calendar day in which the call was opened (of what is older: that of UTC); `job` is what the run
-- belongs to, empty where it is nobody's.
ALTER TABLE session ADD COLUMN job TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN job TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN day TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;
UPDATE usage SET day = strftime('%Y-%m-%d', at, 'unixepoch');
CREATE INDEX usage_by_day ON usage (day);
CREATE INDEX usage_by_job ON usage (job) WHERE job <> '';

-- Running sums over the rows of `usage`, one per account that a limit was ever asked about; made from them where it is
-- missing. Money in nanodollars; `held` is reserved for calls that are not settled; `told` is the limit of whose end the
-- person was warned.
CREATE TABLE account (
    id          TEXT PRIMARY KEY,
    at          REAL NOT NULL,
    money       INTEGER NOT NULL,
    tokens      INTEGER NOT NULL,
    held_money  INTEGER NOT NULL,
    held_tokens INTEGER NOT NULL,
    told_money  INTEGER NOT NULL DEFAULT -1,
    told_tokens INTEGER NOT NULL DEFAULT -1
) WITHOUT ROWID;
CREATE INDEX account_by_time ON account (at);
