"""SQLite through apsw: one file, one writer thread per process, readers beside it."""
