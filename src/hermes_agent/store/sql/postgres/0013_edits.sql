-- The message (the platform's id of it) whose new text a row is: a message and its edits may be mail of several lanes.
ALTER TABLE inbox ADD COLUMN replaces TEXT NOT NULL DEFAULT '';
CREATE INDEX inbox_replaces ON inbox (replaces) WHERE replaces <> '';
