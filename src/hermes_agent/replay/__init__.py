"""Record and replay of runs: the interface between runs and the world (seam: time, ids, models, tools), the
recorder and the replayers."""
