"""Learning in one process: who counts, who reviews, with which hands."""
