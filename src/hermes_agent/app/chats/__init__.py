"""Chat concepts shared by all surfaces: channel settings, roles of people, pseudonyms, home chats, file delivery."""
