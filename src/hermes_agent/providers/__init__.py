"""Answers model requests: vendors as facts, dialects as code, one broker in front of both."""
