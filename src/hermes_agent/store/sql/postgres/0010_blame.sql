-- `crashes` counts the deaths of workers that had the lane in hand, `blamed` those among them that it is likely to have caused.
ALTER TABLE lane ADD COLUMN blamed bigint NOT NULL DEFAULT 0;
