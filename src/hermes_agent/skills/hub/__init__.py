"""Skills from elsewhere: git repositories, what was taken from them, and how it is kept up to date."""
