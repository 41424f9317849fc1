"""Times as people write and read them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

from hermes_agent.core.clock import SystemClock

SPAN = re.compile(r"(\d{1,5})\s*([hdw])")
UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class Since(click.ParamType[float]):
    """A span (`24h`, `7d`, `2w`) before now, or a date `2026-11-21` on this machine's clock, as seconds since 1970."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        span = SPAN.fullmatch(text)
        if isinstance(value, float):
            return value
        try:
            if span:
                return SystemClock().now() - int(span[1]) * UNITS[span[2]].total_seconds()
            return datetime.fromisoformat(text).astimezone().timestamp()
        except (ValueError, OverflowError):
            self.fail(f"`{text}` is neither a span (24h, 7d, 2w) nor a date (2026-11-21).", param, ctx)
