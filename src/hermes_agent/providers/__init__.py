"""Model clients: vendors, API dialects, routing with fallbacks, and the broker."""
