"""Checks criteria: commands and files behind the wall, cards by their state, words by a judge; gives receipts."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LimitReached, Unapproved
from hermes_agent.core.events import Entry, MessageTaken, Replied, ToolEnded, ToolStarted
from hermes_agent.core.messages import Origin, Role, Text, ToolResult
from hermes_agent.sandbox.place import AlreadyStarted, Command, Ended, Place, PlaceFailed, Running
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.work.goals import Check, Criterion, Goal, Kind
from hermes_agent.tools.output import cleaned
from hermes_agent.work.goals.judge import Judged, judged, question_of
from hermes_agent.work.goals.rules import GONE, SHOWN

AskJudge: TypeAlias = Callable[[Goal, SessionRecord, str], Awaitable[str]]
"""Asks the judge on a goal's account. Raises `HermesError`."""
CardState: TypeAlias = Callable[[str, str], Awaitable[str]]
"""The state of a card of the board, for the person (`Goal.principal`) who wants it; empty where they have none of that
id."""
GROUP = "goal"
STATE = r"""if git rev-parse --git-dir >/dev/null 2>&1; then
git rev-parse HEAD 2>/dev/null; git diff HEAD 2>/dev/null | cksum
git ls-files -o --exclude-standard -z | xargs -0r cksum
else find . -type f -size -1024k -not -path '*/.*' -not -path '*/__pycache__/*' -not -path '*/node_modules/*' -print0 \
| sort -z | head -z -n 2000 | xargs -0r cksum; fi | cksum"""
"""What a folder holds, in one line: by git where it is a repository."""
STATE_SECONDS = 60.0
BRIEF_SECONDS = 30.0
"""How long a command may take in the check before the work, which somebody waits for."""
TRIES = 3
"""How often a command is begun whose end nobody saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command gave: exit code (None: nobody saw its end), seconds, the end of its output, and a hash of that."""

    code: int | None
    seconds: float
    output: str = ""
    output_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Checks criteria. `seconds` limits one command; `card` is None where there is no board."""

    place: Place
    clock: Clock
    redact: Callable[[str], str]
    seconds: float
    judge: AskJudge | None = None
    card: CardState | None = None

    async def facts(self, goal: Goal, name: str, *, brief: bool = False) -> list[Check]:
        """The receipts of all criteria that no model is needed for, under exec ids that begin with `name`. A command
        that was begun under its id is waited for. A `brief` check ends each command after some seconds."""
        seconds = min(self.seconds, BRIEF_SECONDS) if brief else self.seconds
        found: list[Check] = []
        for number, each in enumerate(goal.criteria):
            if each.kind is Kind.BOARD:
                found.append(await self._of_card(goal, each))
            elif each.kind is not Kind.JUDGE:
                found.append(await self._of_command(goal, each, f"{name}-{number}", seconds))
        return found

    async def words(self, goal: Goal, record: SessionRecord, entries: Sequence[Entry]) -> list[Check]:
        """The receipts of the criteria in words, from one question to the judge. Raises `LimitReached`."""
        criteria = [each for each in goal.criteria if each.kind is Kind.JUDGE]
        if not criteria:
            return []
        began, last = self.clock.now(), _last_words(entries)
        if self.judge is None:
            verdict = Judged(verdict="unmet", why="No model judges goals here (`goals.judge: never`).")
        else:
            try:
                answer = await self.judge(goal, record, self.redact(question_of(goal, criteria, entries, last)))
                verdict = judged(answer, entries)
            except LimitReached:
                raise
            except HermesError as error:
                verdict = Judged(verdict="unreached", why=str(error))
        seconds = self.clock.now() - began
        return [
            Check(
                criterion=str(each),
                kind=each.kind,
                at=began,
                seconds=seconds,
                verdict=verdict.verdict,
                evidence=verdict.why,
            )
            for each in criteria
        ]

    async def folder(self, goal: Goal, name: str) -> str:
        """A line that changes with the files of the goal's folder."""
        return (await self._run(f"{name}-state", STATE, goal.folder, STATE_SECONDS)).output

    async def _of_card(self, goal: Goal, criterion: Criterion) -> Check:
        began = self.clock.now()
        state = await self.card(goal.principal, criterion.text) if self.card is not None else ""
        verdict, told = "met" if state == "done" else "unmet", f"the card is {state}" if state else "no such card"
        seconds = self.clock.now() - began
        return Check(
            criterion=str(criterion), kind=criterion.kind, at=began, seconds=seconds, verdict=verdict, evidence=told
        )

    async def _of_command(self, goal: Goal, criterion: Criterion, exec_name: str, seconds: float) -> Check:
        began = self.clock.now()
        text = criterion.text if criterion.kind is Kind.COMMAND else file_command(criterion)
        ran = await self._run(exec_name, text, goal.folder, seconds)
        return Check(
            criterion=str(criterion),
            kind=criterion.kind,
            at=began,
            seconds=ran.seconds,
            exit_code=ran.code,
            verdict="met" if ran.code == 0 else "unmet",
            evidence=self.redact(ran.output),
            output_hash=ran.output_hash,
        )

    async def _run(self, name: str, text: str, folder: str, seconds: float) -> Ran:
        if self.place.name == "local" and not await asyncio.to_thread(Path(folder).is_dir):
            return Ran(code=None, seconds=0.0, output=GONE)
        command = Command(text=text, folder=folder, limit=seconds)
        try:
            for number in range(TRIES):
                running = await self._begun(f"{GROUP}/{name}{f'.{number}' if number else ''}", command)
                ended = await running.wait()
                if ended.code is not None:
                    break
            return await _ran(running, ended)
        except PlaceFailed as error:
            return Ran(code=None, seconds=0.0, output=str(error))

    async def _begun(self, exec_id: str, command: Command) -> Running:
        if (running := await self.place.attach(exec_id)) is not None:
            return running
        with suppress(AlreadyStarted):
            return await self.place.start(exec_id, command)
        running = await self.place.attach(exec_id)
        if running is None:
            raise PlaceFailed(f"{exec_id} was begun elsewhere.")
        return running


async def _ran(running: Running, ended: Ended) -> Ran:
    size = await running.size()
    tail = await running.read(max(0, size - SHOWN), SHOWN)
    return Ran(
        code=ended.code,
        seconds=ended.seconds,
        output=cleaned(tail.decode("utf-8", "replace")).strip(),
        output_hash=hashlib.sha256(tail).hexdigest()[:16],
    )


def file_command(criterion: Criterion) -> str:
    """The command that checks a file, behind the wall like every other one."""
    path = shlex.quote(criterion.text)
    exists = f"test -e {path} || {{ echo {shlex.quote(f'{criterion.text} is not there')}; exit 1; }}"
    if criterion.contains:
        lacks = shlex.quote(f"{criterion.text} does not contain {criterion.contains!r}")
        return f"{exists}\ngrep -qF -- {shlex.quote(criterion.contains)} {path} || {{ echo {lacks}; exit 1; }}"
    if criterion.sha256:
        return f"{exists}\necho {shlex.quote(f'{criterion.sha256.lower()}  {criterion.text}')} | sha256sum -c -"
    return exists


def effects_of(entries: Sequence[Entry]) -> str:
    """A hash of the calls of a run that changed something."""
    calls = sorted({(each.event.tool, each.event.summary) for each in entries if isinstance(each.event, ToolStarted)})
    return hashlib.sha256(repr(calls).encode("utf-8", "replace")).hexdigest()


def person_spoke(entries: Sequence[Entry]) -> bool:
    """Whether the run took a message that the runtime did not write."""
    return any(
        isinstance(each.event, MessageTaken) and bool(each.event.principal) and not _is_own(each.event.message.parts[0])
        for each in entries
    )


def _is_own(part: object) -> bool:
    return isinstance(part, Text) and part.origin is Origin.RUNTIME


def unapproved_in(entries: Sequence[Entry]) -> str:
    """The reason of the last call that nobody was there to approve; empty where there is none."""
    for entry in reversed(entries):
        if isinstance(ended := entry.event, ToolEnded) and ended.is_error and (why := _unapproved(_said(ended))):
            return why
    return ""


def _unapproved(text: str) -> str:
    if f'"{Unapproved.kind}"' not in text:
        return ""
    try:
        told = json.loads(text)
    except ValueError:
        return ""
    return str(told.get("error", "")) if isinstance(told, dict) and told.get("kind") == Unapproved.kind else ""


def _said(ended: ToolEnded) -> str:
    return "".join(part.text for part in ended.message.parts if isinstance(part, ToolResult))


def _last_words(entries: Sequence[Entry]) -> str:
    said = (each.event.message for each in reversed(entries) if isinstance(each.event, Replied))
    return next((message.text for message in said if message.role is Role.ASSISTANT and message.text), "")
