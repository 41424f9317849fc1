"""Makes threads and locks scarce, here and in child processes: who waits where they must not, stands still."""
