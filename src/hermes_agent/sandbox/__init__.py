"""Places where commands run, behind one Protocol."""
