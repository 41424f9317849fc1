"""Tables of chats: who was let in, and what people set there."""
