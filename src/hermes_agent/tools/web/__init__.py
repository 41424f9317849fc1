"""Web tools: web_search and web_extract."""
