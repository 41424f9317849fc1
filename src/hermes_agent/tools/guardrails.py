"""Loop detection in the tool calls of a run: exact repeats, repeated failures, results without news. It is told of
calls and results, and returns decisions; it has no side effects."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.tools.settings import GuardrailSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as loop detection compares it: its tool, whether it only reads, and a hash of its arguments."""

    tool: str
    reads: bool
    arguments: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What loop detection decides about a tool call: `run` it, `answer` instead, or `stop` the run; `text` says why."""

    kind: Literal["run", "answer", "stop"] = "run"
    text: str = ""


RUN = Decision()
MOST_ANSWERED = 3
"""Calls answered in a tool's place, one after the other, before the run is stopped: the model does not listen."""


def call_of(tool: str, arguments: Mapping[str, Any], *, reads: bool) -> Call:
    """The call in comparable form; the order of arguments does not matter."""
    text = msgspec.json.encode(arguments, order="sorted", enc_hook=repr)
    return Call(tool=tool, reads=reads, arguments=hashlib.sha256(text).hexdigest())


class Watch:
    """Loop detector for one run's tool calls: ask `before` each, report to `after`; stops calls with `hard_stop`."""

    def __init__(self, settings: GuardrailSettings) -> None:
        self._settings = settings
        self._failures: Counter[Call] = Counter()
        self._of_tool: Counter[str] = Counter()
        self._last: dict[Call, str] = {}
        self._same: Counter[Call] = Counter()
        self._answered = 0

    def before(self, call: Call) -> Decision:
        """Decide about a call. Other than `run` only with `hard_stop`."""
        limits = self._settings
        if not limits.hard_stop:
            return RUN
        if self._of_tool[call.tool] >= limits.stop_tool_failures:
            return Decision("stop", f"`{call.tool}` failed {self._of_tool[call.tool]} times in a row")
        text = ""
        if self._failures[call] >= limits.stop_repeated_failures:
            text = f"This exact call failed {self._failures[call]} times. It was not run again; change something first."
        elif self._same[call] >= limits.stop_same_results:
            text = (
                f"This exact call gave the same result {self._same[call]} times. It was not run again; use that result."
            )
        if not text:
            self._answered = 0
            return RUN
        self._answered += 1
        if self._answered > MOST_ANSWERED:
            return Decision(
                "stop", f"`{call.tool}` was called again and again after being answered that it will not run"
            )
        return Decision("answer", text)

    def after(self, call: Call, *, failed: bool, result: str) -> str:
        """Record an outcome (`result`: the answer's text). Returns guidance for the model, or an empty text."""
        if failed:
            self._failures[call] += 1
            self._of_tool[call.tool] += 1
            return self._about_failure(call)
        self._failures[call] = self._of_tool[call.tool] = 0
        if not call.reads:
            self._last.clear()  # The world may be another one now.
            self._same.clear()
            return ""
        digest = hashlib.sha256(result.encode("utf-8", "replace")).hexdigest()
        self._same[call] = self._same[call] + 1 if self._last.get(call) == digest else 1
        self._last[call] = digest
        if self._settings.warnings and self._same[call] >= self._settings.warn_same_results:
            return f"The same call gave the same result {self._same[call]} times. Use it, or look somewhere else."
        return ""

    def _about_failure(self, call: Call) -> str:
        limits = self._settings
        if not limits.warnings:
            return ""
        if self._failures[call] >= limits.warn_repeated_failures:
            return (
                f"This exact call has now failed {self._failures[call]} times. Repeating it will not help: change it."
            )
        if self._of_tool[call.tool] >= limits.warn_tool_failures:
            times = self._of_tool[call.tool]
            return f"`{call.tool}` has now failed {times} times in a row. Find out why, or go another way."
        return ""
