"""Implementation of `hermes demo`: runs the real program as a child process, narrates its events and checks the
result."""
