"""What people order in chats with slash commands."""
