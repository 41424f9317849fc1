"""What happens when nobody is typing: one package for each kind of work."""
