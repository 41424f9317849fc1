"""Gateway process management: serving, starting in the background, and the systemd unit."""
