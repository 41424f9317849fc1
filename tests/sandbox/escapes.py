"""Ways out of a place, as shell commands, and how to see that none of them was open."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

BOMB = (
    "sh -c 'i=0; while [ $i -lt 3000 ]; do sleep 20 & i=$((i+1)); done' >/dev/null 2>&1; set -- /proc/[0-9]*; echo $#"
)
"""No bomb that could go off: at most 3,000 sleepers, which end by themselves; then how many processes there are."""


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A server on loopback: its port, and who reached it."""
    reached: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reached.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], reached
        finally:
            server.shutdown()
            thread.join()
