"""`hermes demo`, piece by piece: the real program as a child, its events as lines, and the checks at the end."""
