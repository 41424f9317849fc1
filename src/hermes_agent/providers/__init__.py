"""Answers to model requests: vendors, dialects, routing and the broker."""
