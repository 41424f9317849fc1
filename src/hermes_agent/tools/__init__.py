"""Built-in tools that act on the machine (files, shell, code, web), and the permission checks around them."""
