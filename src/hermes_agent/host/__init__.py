"""The machine, behind functions that can be faked."""
