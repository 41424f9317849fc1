-- 1 while the run of a lane does nothing but wait for a person: then it is not what its worker dies of.
ALTER TABLE lane ADD COLUMN waits bigint NOT NULL DEFAULT 0;
