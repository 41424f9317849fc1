-- Mail that takes back a message (the platform's id of it) which was deleted where it was written.
ALTER TABLE inbox ADD COLUMN withdraws TEXT NOT NULL DEFAULT '';
CREATE INDEX inbox_withdraws ON inbox (lane) WHERE withdraws <> '' AND ended IS NULL;
-- Messages that were deleted before they came have no lane.
CREATE INDEX inbox_never ON inbox (ended) WHERE lane = '';
