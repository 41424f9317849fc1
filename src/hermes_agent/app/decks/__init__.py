"""Where time, ids, models and tool results of a process come from: from the world, recorded or not, or from a
recording."""
