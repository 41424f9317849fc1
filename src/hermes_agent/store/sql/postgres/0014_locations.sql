-- Where the record of an `exec` effect is kept: only there a missing record means that it was not begun.
ALTER TABLE effect ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE effect ADD COLUMN place TEXT NOT NULL DEFAULT '';
ALTER TABLE effect ADD COLUMN boot TEXT NOT NULL DEFAULT '';
