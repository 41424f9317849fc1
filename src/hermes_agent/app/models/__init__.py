"""Which models of which vendors a run asks, in which order, and who answers out of them."""
