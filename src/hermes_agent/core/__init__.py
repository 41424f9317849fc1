"""The vocabulary that every other package speaks: plain frozen values, standard library only."""
