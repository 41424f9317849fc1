"""Chats as every surface knows them: settings, people, pseudonyms, home chats, files to deliver."""
