"""Ports for servers that must be told theirs before they listen."""

import random
import socket

# Below those that the kernel gives to whoever asks for any: nobody gets it between our look and the server's start.
NUMBERS = range(20_000, 32_000)


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    while True:
        port = random.SystemRandom().choice(NUMBERS)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
