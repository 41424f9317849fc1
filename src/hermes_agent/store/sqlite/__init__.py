"""SQLite backend of the store, through apsw: one file, one writer thread per process, concurrent readers."""
