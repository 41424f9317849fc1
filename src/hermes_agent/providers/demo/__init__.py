"""The demo vendor: a scripted model behind a real loopback socket, and the small broken project that it repairs."""
