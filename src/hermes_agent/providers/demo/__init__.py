"""Demo vendor: a scripted model behind a real loopback socket, with a small broken project that it repairs."""
