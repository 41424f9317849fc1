"""The gate of learning in the foreground: what the agent of a conversation writes itself passes it as a review does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hermes_agent.agent.agent import Proposed
from hermes_agent.app.learning.work import HomeWriters
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.chat import Standings
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import ToolCall
from hermes_agent.core.tool import Answer
from hermes_agent.host.late import Needs
from hermes_agent.learning.drafts import Draft, Evidence, Waits, draft_of
from hermes_agent.learning.proposing import DICTATED, MEANT, LessonGate, Proposing, sources_of
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import label_of
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Job, JobKind
from hermes_agent.store.sessions import Session


class PutAside(ToolError):
    """What the agent wanted to keep waits for the person."""

    kind = "put_aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningHook:
    """Tool-call hook that lets a write to notes or skills wait where `LessonGate` does not let it pass."""

    store: Store
    clock: Clock
    standings: Standings
    proposing: Proposing

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `PutAside` for what waits, `Refused` for what would and was rejected before."""
        context = proposed.context
        call = ToolCall(id="", name=proposed.tool.schema.name, arguments=proposed.arguments)
        draft = draft_of(call, "", context.key)
        record = await self.store.sessions.get(context.session)
        if draft is None or record is None:
            return
        base = await self.proposing.hands_of(record).content(draft)
        draft = replace(draft, known=(base or b"").decode("utf-8", "replace"))
        own = label_of(self.standings.of(record.principal), record.conversation)
        entries = await self.store.history.entries(context.session)
        sources = await sources_of(self.store, entries, own)
        trust = max(sources.trust, context.trust)
        gate = LessonGate(trust=trust, share=DICTATED if trust else MEANT)
        verdict = await gate.judge(draft, sources)
        if isinstance(verdict, Waits):
            await self.proposing.check(draft)
            number = await self._put(draft, verdict, (record, len(entries)), base)
            raise PutAside(
                f"Put aside as p{number}: it is not live, and waits until the person says so.",
                hint="Do not write it again; go on, and mention it in your reply.",
            )

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:  # noqa: ARG002 - the Protocol's shape
        """Nothing to add."""
        return answer

    async def _put(self, draft: Draft, waits: Waits, seen: tuple[Session, int], base: bytes | None) -> int:
        record, last = seen
        job = Job(
            id=draft.key,
            kind=JobKind.REVIEW,
            session=record.id,
            principal=record.principal,
            what="",
            first=1,
            last=last,
            created=self.clock.now(),
        )
        evidence = Evidence(through="foreground", sort=draft.teaches.value).text
        return await self.proposing.put(draft, waits, job, evidence, base)


def learning_hook(needs: Needs) -> LearningHook:
    """Factory of the hook of one run."""
    store, clock, standings = needs.get(Store), needs.get(Clock), needs.get(Standings)
    skills, notes, settings = needs.get(Skills), needs.get(Notes), needs.get(Settings)
    writers = partial(HomeWriters, skills=skills, notes=notes, is_owner_key=standings.is_owner)
    proposing = Proposing(
        store=store, clock=clock, hands_of=lambda record: writers(record=record), days=settings.learning.waits_days
    )
    return LearningHook(store=store, clock=clock, standings=standings, proposing=proposing)
