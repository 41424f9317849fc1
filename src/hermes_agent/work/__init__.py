"""Work without a person, one package for each kind; no kind imports another."""
