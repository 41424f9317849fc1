"""One daemon for many chat platforms: what is said there becomes mail, what is to be said there goes out once."""
