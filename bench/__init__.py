"""Measurements: each figure beside a floor that was taken in the same run, so that it means something on any
machine."""
