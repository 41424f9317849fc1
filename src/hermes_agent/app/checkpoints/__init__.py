"""The checkpoints of sessions: taken before files change, shown and put back."""
