"""Search service backends of `web_search`, one module each."""
