"""What all surfaces know about chats: channel settings, roles, pseudonyms, platform facts, file delivery."""
