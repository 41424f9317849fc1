"""Tables of the kinds of work: goals and their checks."""
