"""What a prompt says of the built-in tools, without loading them."""
