"""What all surfaces know about chats: channel settings, roles of people, pseudonyms, platform facts, home chats, file
delivery."""
