"""Signing in to a vendor instead of holding a key: the ways, the tokens on disk, and who renews them."""
