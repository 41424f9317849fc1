"""Matrix protocol: client, sync, rooms, and end-to-end encryption."""
