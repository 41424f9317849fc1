"""Prompts of an editor: each becomes a message of a run, a command or an answer, and is answered itself at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import field, replace
from typing import Any

from acp import schema

from hermes_agent.acp.content import Block, parts_of
from hermes_agent.acp.editor import Editor, Unanswered
from hermes_agent.acp.following import FollowedSession
from hermes_agent.acp.speech import notice
from hermes_agent.app.operations.questions import answer_in_words, answer_question, answer_to
from hermes_agent.app.operations.sessions import SessionRecord, last_number
from hermes_agent.app.system import System
from hermes_agent.core.chat import Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NothingMore
from hermes_agent.core.events import Answered, Asked, MessageTaken, Outcome, Replied, RunEnded, Seen
from hermes_agent.core.messages import Origin, StopReason, Text, Usage
from hermes_agent.core.quick_replies import ONCE, TRUST
from hermes_agent.host.tasks import spawn

STOP_SECONDS = 1.5
"""Seconds after a cancel in which the run may end before the prompt is answered without it."""
LOOK_SECONDS = 0.02
REASONS: dict[Outcome, schema.StopReason] = {
    Outcome.ANSWERED: "end_turn",
    Outcome.STOPPED: "cancelled",
    Outcome.LIMIT: "max_turn_requests",
}
CUT_SHORT: dict[StopReason, schema.StopReason] = {StopReason.REFUSED: "refusal", StopReason.LENGTH: "max_tokens"}
TRUST_OPTIONS: dict[str, tuple[schema.PermissionOptionKind, str]] = {
    TRUST.word: ("allow_always", "Trust this folder"),
    ONCE.word: ("allow_once", "This time only"),
    "not now": ("reject_once", "Not now"),
}


@dataclass(slots=True)
class Prompt:
    """A prompt under way. `inbound` is its message once `submitting` has begun, `row` that of the inbox, `run` the run
    that took it."""

    task: asyncio.Task[Any] | None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    inbound: Inbound | None = None
    submitting: asyncio.Task[Any] | None = None
    row: int = 0
    run: str = ""


@dataclass(slots=True)
class Outcomes:
    """What the run of one prompt came to: the last reply's end, tokens and cost (None: unknown), and what it asked
    that only the next prompt can answer."""

    stop: StopReason = StopReason.END
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    asked: str = ""

    def see(self, event: Replied) -> None:
        """Count a reply."""
        used, more = self.usage, event.usage
        self.stop = event.stop
        self.cost = None if self.cost is None or event.cost is None else self.cost + event.cost
        names = ("input", "output", "cached", "cache_write", "reasoning")
        self.usage = Usage(**{name: getattr(used, name) + getattr(more, name) for name in names})

    def response(self, reason: schema.StopReason, run: str) -> schema.PromptResponse:
        """The answer to the prompt."""
        used = self.usage
        usage = schema.Usage(
            total_tokens=used.input + used.output,
            input_tokens=used.input,
            output_tokens=used.output,
            thought_tokens=used.reasoning,
            cached_read_tokens=used.cached,
            cached_write_tokens=used.cache_write,
        )
        meta = {"hermes": {"run": run, "cost": self.cost}}
        return schema.PromptResponse(stop_reason=reason, usage=usage, field_meta=meta)


class Failed(HermesError):
    """A run failed; `error` is the class of its error."""

    def __init__(self, text: str, error: str) -> None:
        super().__init__(text)
        self.error = error


class EditorSession(FollowedSession):
    """A session that takes prompts. `before` is the same session as it was open before, whose prompts go on."""

    def __init__(
        self, system: System, editor: Editor, record: SessionRecord, source: str, before: EditorSession | None = None
    ) -> None:
        super().__init__(system, editor, record, source)
        self.prompts: list[Prompt] = before.prompts if before else []
        self.own = before.own if before else self.own
        self._has_asked_trust = False

    async def prompt(self, blocks: Sequence[Block]) -> schema.PromptResponse:
        """Answer a prompt. Raises `HermesError`; a cancelled one is always answered within two seconds."""
        prompt = Prompt(asyncio.current_task())
        self.prompts.append(prompt)
        work = spawn(self._outcome(prompt, blocks), name=f"prompt in {self.record.id}")
        over = spawn(prompt.cancelled.wait(), name="cancelled")
        stopping: asyncio.Task[None] | None = None
        try:
            await asyncio.wait((work, over), return_when=asyncio.FIRST_COMPLETED)
            if prompt.cancelled.is_set():
                if prompt.inbound is not None and prompt.submitting is not None:
                    work_on = self._stop(prompt, prompt.inbound, prompt.submitting)
                    stopping = spawn(work_on, name=f"cancel in {self.record.id}")
                    await asyncio.wait((work,), timeout=STOP_SECONDS)
                return schema.PromptResponse(stop_reason="cancelled")
            if isinstance(found := work.result(), HermesError):
                raise found
            return found
        finally:
            self.prompts.remove(prompt)
            over.cancel()
            work.cancel()
            if stopping is not None and not stopping.done():
                spawn(_within(stopping, STOP_SECONDS), name="end of a cancel")

    def is_prompting(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether that task answers a prompt of this session."""
        return any(each.task is task for each in self.prompts)

    async def _stop(self, prompt: Prompt, inbound: Inbound, submitting: asyncio.Task[Any]) -> None:
        """Take the prompt's message back, and stop the run that took it."""
        hermes = self.system.hermes
        await asyncio.wait((submitting,))
        back = replace(
            inbound, source_id=f"{inbound.source_id}:withdrawn", parts=(), withdraws=inbound.source_id, answers=""
        )
        if not prompt.run:
            await hermes.withdraw(back)
        while prompt in self.prompts and not prompt.run:
            await self.system.clock.sleep(LOOK_SECONDS)
        if prompt.run:
            await hermes.stop_run(self.record.id, prompt.run, prompt.row)

    async def _outcome(self, prompt: Prompt, blocks: Sequence[Block]) -> schema.PromptResponse | HermesError:
        try:
            return await self._work(prompt, blocks)
        except HermesError as error:
            return error

    async def _work(self, prompt: Prompt, blocks: Sequence[Block]) -> schema.PromptResponse:
        record, system = await self.refresh(), self.system
        parts = await parts_of(blocks, system, record.workspace, record.id)
        inbound, who = self.inbound(parts), Origin(system.owner.standing.value)
        typed = [part for part in parts if isinstance(part, Text) and part.origin is who]
        line = "".join(part.text for part in typed)
        if (text := await answer_in_words(self.access, line)) is not None:
            return await self._said(text)
        question, answer = await answer_to(system, record.id, line, is_private=True)
        if question:
            inbound = replace(inbound, answers=question, parts=(Text(text=answer, origin=who),))
        elif (done := await self.perform(line)) is not None:
            if done.submit is None:
                return await self._said(done.text)
            others = tuple(part for part in parts if part not in typed)
            inbound = replace(done.submit, parts=(*done.submit.parts, *others))
        system.route(inbound.model or record.model)  # Without a model nothing is begun.
        await self._consent()
        self.options.before_run()
        return await self._run(prompt, inbound)

    async def _said(self, text: str) -> schema.PromptResponse:
        await self.say(text)
        await self.options.show_changed()
        return schema.PromptResponse(stop_reason="end_turn")

    async def _run(self, prompt: Prompt, inbound: Inbound) -> schema.PromptResponse:
        hermes, session = self.system.hermes, self.record.id
        after = await last_number(self.system, session)
        prompt.inbound = inbound
        prompt.submitting = spawn(hermes.submit(inbound, session), name=f"submit to {session}")
        submitted = await asyncio.shield(prompt.submitting)
        prompt.row = submitted.inbox or 0
        self.own.add(prompt.row)
        if self.is_loaded:
            self.is_loaded = False
            await hermes.resume(session)  # A run that a crash left open takes the message along.
        found = Outcomes()
        try:
            number, reason = await self._ended(prompt, after, found)
        except NothingMore as error:
            await self.say(str(error))
            return found.response("end_turn", prompt.run)
        await self.until_shown(number)
        if found.asked:
            await self.say(found.asked)
        return found.response(reason, prompt.run)

    async def _ended(self, prompt: Prompt, after: int, found: Outcomes) -> tuple[int, schema.StopReason]:
        """The end of the run that took the prompt: its number, and how it ended. Raises `NothingMore`, `Failed`."""
        async with aclosing(self.system.hermes.watch(self.record.id, after, prompt.row, live=False)) as events:
            while True:
                seen = await anext(events)
                if (reason := self._end(prompt, seen, found)) is not None:
                    return seen.number, reason

    def _end(self, prompt: Prompt, seen: Seen, found: Outcomes) -> schema.StopReason | None:
        """How the prompt ends with this event; None: it goes on. Raises `Failed`."""
        match seen.event:
            case MessageTaken(inbox=row) | Answered(inbox=row) if row == prompt.row:
                prompt.run = seen.run
            case Replied() as replied if seen.run == prompt.run:
                found.see(replied)
            case Asked() as asked if seen.run == prompt.run and not self.questions.shows(asked):
                found.asked = asked.text
                return "end_turn"
            case RunEnded(outcome=Outcome.FAILED, text=text, error=error) if seen.run == prompt.run:
                raise Failed(text, error)
            case RunEnded(outcome=outcome) if seen.run == prompt.run:
                return CUT_SHORT.get(found.stop, "end_turn") if outcome is Outcome.ANSWERED else REASONS[outcome]
            case _:
                pass
        return None

    async def _consent(self) -> None:
        """Before the first run: say what is wrong here, and ask whether the folder and the MCP servers are trusted."""
        if not self._has_asked_trust:
            self._has_asked_trust = True
            if self.system.notice:
                await self.show(notice(self.system.notice, self.record.id))
            news = await asyncio.to_thread(self.system.folders.question, self.record.workspace)
            if news is not None and news.files:
                await self._ask_trust(news.id, news.notice.text)
        await self.options.consent(self.questions)

    async def _ask_trust(self, name: str, text: str) -> None:
        with suppress(Unanswered):
            word = await self.questions.choose(name, text, tuple(TRUST_OPTIONS), TRUST_OPTIONS)
            if word in (TRUST.word, ONCE.word):
                await self.say(f"{await answer_question(self.access, name, word)}\n\n")

    def cancel(self) -> None:
        """Cancel the prompts under way."""
        if self.prompts:
            self.questions.withdraw()
        for prompt in self.prompts:
            prompt.cancelled.set()


async def _within(task: asyncio.Task[None], seconds: float) -> None:
    await asyncio.wait((task,), timeout=seconds)
    task.cancel()
