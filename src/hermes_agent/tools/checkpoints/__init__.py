"""File checkpoints: snapshots of folders before changes, kept in the home, never in the project's own repository."""
