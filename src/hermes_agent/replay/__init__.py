"""Record and replay of runs: the interface to the world (seam: time, ids, models, tools), recorder and replayers."""
