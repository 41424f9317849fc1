"""What the Bot API of Telegram says and is told."""
