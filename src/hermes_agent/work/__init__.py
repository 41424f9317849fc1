"""Work without a person: each kind is a package of its own."""
