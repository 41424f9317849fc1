"""Mail as a chat: what comes in over IMAP is read with suspicion, what goes out over SMTP is threaded."""
