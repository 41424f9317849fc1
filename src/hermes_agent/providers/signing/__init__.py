"""Authentication without a fixed key: request signing and short-lived tokens, loaded by the vendors that need them."""
