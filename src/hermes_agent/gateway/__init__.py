"""Gateway daemon for chat platforms: receives messages durably and delivers replies through the outbox."""
