"""Credentials that are no key: what signs a request, or gets a token for it, loaded by the vendors that need it."""
