"""OAuth sign-in to vendors instead of an API key: flows, stored tokens, and their refresh."""
