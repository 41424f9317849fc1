"""The machine that Hermes runs on, behind functions that can be made to fail."""
