"""Cassettes: what came from outside in a run, written down so that the run can be had again without a model."""
