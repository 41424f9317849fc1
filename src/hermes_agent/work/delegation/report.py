"""Report of a child: what it says, and what its log, its commands' records and its files say about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Entry, Outcome, Replied, RunEnded, ToolEnded, ToolStarted
from hermes_agent.core.messages import Origin, ToolCall
from hermes_agent.core.records import revive
from hermes_agent.core.section import fenced
from hermes_agent.core.shown import plural
from hermes_agent.store.transaction import plain, written
from hermes_agent.store.work.children import Child

LOST = "lost"
"""The outcome of a child whose run crashed its workers again and again, or whose session is gone."""
NO_WORDS = "It ended without a report."
NO_CHECK = "No check was run: no command of it is on record."
OTHERS_WORDS = "These are the agent's own words."
REMOVED = "No changes: the worktree is removed."
"""Ends the summary of a worktree that its child left as it was."""
SHOWN = 20
"""Artefacts, checks and calls that a report names, each; the log has all of them."""
LINE = 200
USE = "use_tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A file that the child's calls wrote, as it was at the end; no hash where it was gone or could not be read."""

    path: str
    sha256: str = ""
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A command that the child ran, by the record of its place. `exit` is None where it has not ended, or nobody saw
    it end."""

    command: str
    exit: int | None
    exec_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A tool call of the child, in one line."""

    tool: str
    summary: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBy:
    """What the child's model calls used; `cost` in US dollars, None where a price is unknown."""

    turns: int = 0
    tokens: int = 0
    cost: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a child. `summary` are its own words, `label` the worst label of what it had in view when it said
    them; `diff` is git's summary of a worktree's changes. Everything else comes from records, not from its words."""

    summary: str = ""
    label: Origin = Origin.RUNTIME
    artefacts: tuple[Artefact, ...] = ()
    checks: tuple[Check, ...] = ()
    spent: SpentBy = field(default_factory=SpentBy)
    trace: tuple[Step, ...] = ()
    diff: str = ""

    @property
    def body(self) -> str:
        """The report as JSON."""
        return written(self)


def report_of(child: Child) -> Report:
    """The report in a child's row; an empty one where there is none."""
    if not child.report:
        return Report()
    found: Report = revive(Report, plain(child.report))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A call that the log has: the tool and arguments that it means, its effect, and whether it succeeded (None: it
    has no result)."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    effect: Effect
    summary: str
    ok: bool | None


def calls_in(entries: Sequence[Entry]) -> list[Made]:
    """The tool calls in a log, in order."""
    asked: dict[str, ToolCall] = {}
    begun: dict[str, ToolStarted] = {}
    ended: dict[str, ToolEnded] = {}
    for entry in entries:
        match entry.event:
            case Replied(message=message):
                asked.update({call.id: call for call in message.tool_calls})
            case ToolStarted(call_id=id_) as event:
                begun[id_] = event
            case ToolEnded(call_id=id_) as event:
                ended[id_] = event
            case _:
                pass
    return [_made(call, begun.get(call.id), ended.get(call.id)) for call in asked.values()]


def _made(call: ToolCall, begun: ToolStarted | None, ended: ToolEnded | None) -> Made:
    inner = call.arguments.get("arguments") if call.name == USE else call.arguments
    arguments = inner if isinstance(inner, Mapping) else {}
    tool = ended.tool if ended else begun.tool if begun else call.name
    summary = begun.summary if begun else f"{tool} {json.dumps(dict(arguments), ensure_ascii=False)}"
    return Made(
        id=call.id,
        tool=tool,
        arguments=arguments,
        effect=begun.effect if begun else Effect.READS,
        summary=" ".join(summary.split())[:LINE],
        ok=None if ended is None else not ended.is_error,
    )


def log_of(entries: Sequence[Entry]) -> list[str]:
    """The steps in a log, a line each: calls, words, ends."""
    made = {call.id: call for call in calls_in(entries)}
    lines: list[str] = []
    for entry in entries:
        match entry.event:
            case Replied(message=message):
                lines += [f"said: {message.text}"] if message.text else []
                lines += [f"called: {made[call.id].summary}{_state(made[call.id])}" for call in message.tool_calls]
            case RunEnded(outcome=outcome, text=text):
                lines.append(f"ended ({outcome}): {text}")
            case _:
                pass
    return lines


def _state(made: Made) -> str:
    return "" if made.ok else " (failed)" if made.ok is False else " (not over)"


def cut(text: str, most: int, session: str) -> str:
    """At most so many characters; says where the rest is."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters: agents(action=log, id={session})]"


def shown(child: Child, report: Report) -> str:
    """The report as the parent reads it."""
    spent = report.spent
    cost = "unknown" if spent.cost is None else f"${spent.cost:.4f}"
    used = f"{plural(spent.turns, 'turn')}, {spent.tokens:,} tokens, cost {cost}"
    lines = [
        f"Agent {child.session}: {child.outcome or child.state}; {used}.",
        f"Goal: {' '.join(child.goal.split())[:LINE]}",
        *([f"Worktree: {child.folder}, branch {child.branch}."] if child.branch else []),
        *([report.diff] if report.diff else []),
        *_listed("Files written", [_file(each) for each in report.artefacts]),
        *(_listed("Commands run", [_checked(each) for each in report.checks]) or [NO_CHECK]),
        *_listed("Calls", [f"{each.summary}{'' if each.ok else ' (failed)'}" for each in report.trace]),
    ]
    words = report.summary.strip()
    if not words or child.outcome in (Outcome.STOPPED, Outcome.FAILED, LOST):
        return "\n".join([*lines, f"How it ended: {words}" if words else NO_WORDS])
    return "\n".join([*lines, fenced(report.summary, OTHERS_WORDS)])


def _listed(head: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"  and {len(lines) - SHOWN:,} before these"] if len(lines) > SHOWN else []
    return [f"{head}:", *more, *(f"  {line}" for line in lines[-SHOWN:])]


def _file(artefact: Artefact) -> str:
    path = " ".join(artefact.path.split())
    if not artefact.sha256:
        return f"{path} (not there at the end)"
    return f"{path} ({artefact.bytes:,} bytes, sha256 {artefact.sha256[:16]})"


def _checked(check: Check) -> str:
    code = "no exit code on record" if check.exit is None else f"exit {check.exit}"
    return f"`{' '.join(check.command.split())[:LINE]}`: {code}"
