"""What learning keeps in the store: what conversations brought, the jobs that follow, and what waits."""
