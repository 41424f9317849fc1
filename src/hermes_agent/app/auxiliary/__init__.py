"""Models that work beside the one that answers, each for a purpose of its own."""
