"""Prometheus metrics of the HTTP servers: counters, a latency histogram, and process figures."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from hermes_agent.core.dataclass import dataclass

BOUNDS = (0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0)
"""Seconds; the upper bounds of the histogram's buckets, as Prometheus's own clients have them, fewer."""
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
KILO = 1 if sys.platform == "darwin" else 1024
"""In what `ru_maxrss` counts: bytes on macOS, kilobytes elsewhere."""


@dataclass(slots=True)
class Metrics:
    """Counters since start that a process's HTTP servers share: requests, waited-for runs, webhooks and latency."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    webhooks: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: Counter[float] = field(default_factory=Counter)
    total_seconds: float = 0.0

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request when its answer starts; `path` is the endpoint's pattern, to keep the number of labels
        small."""
        self.requests[method, path, status] += 1
        self.total_seconds += seconds
        self.seconds[next((bound for bound in BOUNDS if seconds <= bound), float("inf"))] += 1

    def text(self, waiting: int) -> bytes:
        """All metrics in Prometheus's text format."""
        return ("\n".join(self._lines(waiting)) + "\n").encode()

    def _lines(self, waiting: int) -> Iterator[str]:
        yield from _head("hermes_http_requests_total", "counter", "Requests that were answered.")
        for (method, path, status), count in sorted(self.requests.items()):
            yield f'hermes_http_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield from _head("hermes_http_seconds", "histogram", "Seconds until the first byte of the answer.")
        below = 0
        for bound in (*BOUNDS, float("inf")):
            below += self.seconds[bound]
            yield f'hermes_http_seconds_bucket{{le="{"+Inf" if bound == float("inf") else f"{bound:g}"}"}} {below}'
        yield f"hermes_http_seconds_sum {self.total_seconds:.6f}"
        yield f"hermes_http_seconds_count {below}"
        yield from _head("hermes_runs_waited_for", "gauge", "Requests that wait for a run.")
        yield f"hermes_runs_waited_for {waiting}"
        yield from _head("hermes_runs_total", "counter", "Runs that were waited for, by how they ended.")
        for outcome, count in sorted(self.runs.items()):
            yield f'hermes_runs_total{{outcome="{outcome}"}} {count}'
        yield from _head("hermes_webhooks_total", "counter", "Webhook requests, by what became of them.")
        for (route, outcome), count in sorted(self.webhooks.items()):
            yield f'hermes_webhooks_total{{route="{_label(route)}",outcome="{outcome}"}} {count}'
        used = resource.getrusage(resource.RUSAGE_SELF)
        yield from _head("process_cpu_seconds_total", "counter", "CPU seconds of this process.")
        yield f"process_cpu_seconds_total {used.ru_utime + used.ru_stime:.3f}"
        yield from _head("process_max_resident_memory_bytes", "gauge", "The most memory that it ever held.")
        yield f"process_max_resident_memory_bytes {used.ru_maxrss * KILO}"


def _label(value: str) -> str:
    """Escape a label value."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
