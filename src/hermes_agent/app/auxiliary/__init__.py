"""Background models: secondary models asked for titles, summaries, reviews, picture descriptions and the like."""
