"""Logs what runs do: tool calls, questions and answers, warnings, ends."""

from __future__ import annotations

import json
import logging

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Answered, Asked, Notice, RunEnded, RunStarted, Seen, ToolEnded, ToolStarted
from hermes_agent.core.messages import ToolResult
from hermes_agent.host.logs import log_of

REFUSED = "refused"
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line for the log file with its level."""

    text: str
    level: int = logging.INFO


class ActivityLog:
    """Event listener that logs a run's start and end, tool results, questions and answers, and warnings."""

    def __init__(self) -> None:
        self._summaries: dict[str, str] = {}
        self._approvals: set[str] = set()

    def __call__(self, seen: Seen) -> None:
        if (line := self._line(seen)) is not None:
            log_of("runs", session=seen.session, run=seen.run).log(line.level, "%s", line.text)

    def _line(self, seen: Seen) -> LogLine | None:
        line: LogLine | None = None
        match seen.event:
            case RunStarted(resumed=resumed):
                line = LogLine(text="run resumes after an interruption" if resumed else "run started")
            case ToolStarted(call_id=call_id, summary=summary):
                self._summaries[f"{seen.session}/{call_id}"] = summary[:LONGEST]
            case ToolEnded():
                line = self._call(seen.session, seen.event)
            case Asked(question=question, purpose="approval", text=text):
                self._approvals.add(question)
                line = LogLine(text=f"approval asked: {' '.join(text.split())[:LONGEST]}")
            case Asked():
                line = LogLine(text="the person is asked for a fact")
            case Answered(question=question, answer=answer, principal=principal):
                words = answer.partition(" ")[0] if question in self._approvals else "a fact"
                self._approvals.discard(question)
                line = LogLine(text=f"answered by {principal}: {words}")
            case Notice(text=text, level="warning" | "error"):
                line = LogLine(text=f"notice: {text[:LONGEST]}", level=logging.WARNING)
            case RunEnded(outcome=outcome, turns=turns, reason=reason, error=error):
                why = f", {reason or error}" if reason or error else ""
                line = LogLine(text=f"run ended: {outcome}, {turns} turns{why}")
            case _:
                pass
        return line

    def _call(self, session: str, event: ToolEnded) -> LogLine:
        summary = self._summaries.pop(f"{session}/{event.call_id}", event.tool)
        took = f"{event.seconds:.1f} s"
        if not event.is_error:
            return LogLine(text=f"tool {summary}: ok, {took}")
        kind = _kind(event)
        return LogLine(
            text=f"tool {summary}: {kind}, {took}", level=logging.ERROR if kind == REFUSED else logging.WARNING
        )


def _kind(event: ToolEnded) -> str:
    """The kind of a failed call, as its answer names it."""
    text = "".join(part.text for part in event.message.parts if isinstance(part, ToolResult))
    try:
        said = json.loads(text)
    except ValueError:
        return "failed"
    return str(said.get("kind", "failed")) if isinstance(said, dict) else "failed"
