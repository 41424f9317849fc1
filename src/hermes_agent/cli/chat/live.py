"""Renders the unfinished part of the transcript above the input: streamed text, thoughts, running calls, queued
messages."""

from __future__ import annotations

from collections.abc import Callable

from hermes_agent.cli.chat.calls import FRAMES_PER_SECOND, SPINNER, running_line
from hermes_agent.cli.chat.text import CYAN, DIM, clean, elapsed, one_line, paint
from hermes_agent.cli.chat.transcript import Transcript

MOST_RENDERED = 20_000
"""Characters of an unfinished block that are still rendered with every frame; a longer one is shown as it is."""
MOST_CALLS = 8
MOST_WAITING = 3


class Live:
    """Renderer of a transcript's open part as coloured lines."""

    def __init__(self, transcript: Transcript, render: Callable[[str, int], str]) -> None:
        self._transcript = transcript
        self._render = render
        self._drawn: tuple[str, int, str] = ("", 0, "")

    def lines(self, now: float, width: int, height: int) -> list[str]:
        """At most `height` lines of at most `width` cells (except long lines of code); older text is dropped first."""
        shown = self._transcript
        below = [*self._thoughts(width), *self._calls(now, width), *self._waiting(width)]
        room = max(1, height - len(below))
        words = self._words(width)
        if len(words) > room:
            words = words[-room:]
        lines = words + below
        return ["", *lines][-height:] if lines and (shown.gap or not words) else lines

    def activity(self, now: float) -> str:
        """The current activity in a word or two."""
        shown = self._transcript
        if not shown.running:
            return "idle"
        if shown.stopping:
            return "stopping"
        if shown.questions:
            return "waits for you"
        mark = SPINNER[int(now * FRAMES_PER_SECOND) % len(SPINNER)]
        clock = elapsed(max(0.0, now - shown.began)).split(".")[0].removesuffix(" s") + " s"
        return f"{mark} {self._doing()} {clock}"

    def _doing(self) -> str:
        shown = self._transcript
        if shown.retrying:
            return "retrying"
        if shown.calls:
            names = list(dict.fromkeys(call.tool for call in shown.calls.values()))
            return names[0] if len(names) == 1 else f"{len(shown.calls)} calls"
        if shown.forming:
            return shown.forming
        return "writing" if shown.words.tail or shown.words.given else "thinking"

    def _words(self, width: int) -> list[str]:
        tail = self._transcript.words.tail
        if not tail.strip():
            return []
        if self._drawn[:2] != (tail, width):
            drawn = self._render(tail, width) if len(tail) < MOST_RENDERED else clean(tail[-MOST_RENDERED // 4 :])
            self._drawn = (tail, width, drawn)
        return self._drawn[2].split("\n")

    def _thoughts(self, width: int) -> list[str]:
        thoughts = clean(self._transcript.thoughts[-2000:]).strip()
        if not thoughts:
            return []
        return [paint(f"∴ {one_line(line, width - 3)}", DIM) for line in thoughts.split("\n")[-2:] if line.strip()]

    def _calls(self, now: float, width: int) -> list[str]:
        calls = list(self._transcript.calls.values())
        lines = [running_line(call, now, width) for call in calls[:MOST_CALLS]]
        if len(calls) > MOST_CALLS:
            lines.append(paint(f"  … {len(calls) - MOST_CALLS} more", DIM))
        return lines

    def _waiting(self, width: int) -> list[str]:
        texts = list(self._transcript.waiting.values())
        lines = [f"{paint('>', CYAN)} {paint(one_line(text, max(8, width - 12)), DIM)}" for text in texts]
        if not self._transcript.running:
            return lines[-MOST_WAITING:]
        return [f"{line}{paint(' (queued)', DIM)}" for line in lines[-MOST_WAITING:]]
