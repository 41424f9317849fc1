"""Parsing of times on the command line."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

from hermes_agent.core.clock import SystemClock

SPAN = re.compile(r"(\d{1,5})\s*([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Since(click.ParamType[float]):
    """Click type: a span (`10m`, `24h`, `7d`) before now, or a local date (and time), as seconds since 1970."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        span = SPAN.fullmatch(text)
        if isinstance(value, float):
            return value
        try:
            if span:
                return SystemClock().now() - timedelta(**{UNITS[span[2]]: int(span[1])}).total_seconds()
            return datetime.fromisoformat(text).astimezone().timestamp()
        except (ValueError, OverflowError):
            self.fail(
                f"`{text}` is neither a span (30s, 10m, 24h, 7d, 2w) nor a date (2026-11-21, 2026-11-21T12:00).",
                param,
                ctx,
            )
