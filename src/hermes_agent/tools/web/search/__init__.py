"""Who `web_search` asks, each in a file of its own."""
