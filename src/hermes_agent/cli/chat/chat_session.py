"""The chat's session: finds or creates it, and submits messages, commands and answers to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from hermes_agent.app.commands.command import Desk, Done, perform
from hermes_agent.app.operations import sessions as operations
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.sessions import SessionRecord
from hermes_agent.app.system import System
from hermes_agent.cli.chat.status import Status
from hermes_agent.cli.options import Invocation
from hermes_agent.core.events import Entry
from hermes_agent.core.inbound import Conversation, Inbound
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.paths import current_folder
from hermes_agent.skills.invoke import bundles_of

MOST_SKILLS = 1_000


class ChatSession:
    """Session of one chat on a running system. It is created with the first line, so that an unused chat leaves
    nothing behind."""

    def __init__(self, runtime: System, invocation: Invocation) -> None:
        self.runtime = runtime
        self.record: SessionRecord | None = None
        self._invocation = invocation
        self._preload = invocation.skills
        self.workspace = str(current_folder())
        self.skills: tuple[tuple[str, str], ...] = ()
        self.conversation = Conversation(platform="cli", chat_kind="folder", chat=self.workspace)

    @property
    def _access(self) -> Access[System]:
        return Access(system=self.runtime, who=self.runtime.owner)

    @property
    def session(self) -> str:
        """The session's id; empty before the first line."""
        return self.record.id if self.record is not None else ""

    @property
    def folder(self) -> str:
        """The session's working folder."""
        return self.record.workspace if self.record is not None and self.record.workspace else self.workspace

    async def open(self) -> None:
        """Find the session that the command line names. Raises `UnknownSession`."""
        invocation = self._invocation
        if invocation.resume:
            self.record = await operations.find_session(self._access, invocation.resume)
        elif invocation.go_on:
            self.record = await operations.current_session(self.runtime, self.conversation)
        if self.record is None:
            return
        if invocation.model and invocation.model != self.record.model:
            await self.runtime.hermes.choose(self.record.id, invocation.model)
            await self.refresh()
        if invocation.resume:
            await self.runtime.hermes.make_current(self.conversation, self.record.id)

    async def see_skills(self) -> None:
        """Load the skills and bundles for completion: name and description."""
        kept = self.runtime.skills
        here = kept.occasion(self.session, self.record.conversation if self.record else self.conversation.key)
        headers = await kept.library.all(self.folder, here, limit=MOST_SKILLS)
        bundles = await asyncio.to_thread(bundles_of(kept.library.places.home).names)
        self.skills = (
            *((name, "A bundle of skills.") for name in bundles),
            *((c.name, c.description) for c in headers),
        )

    async def refresh(self) -> None:
        """Reload the session's record: its title or model may have changed."""
        if self.record is not None:
            self.record = await operations.get_session(self._access, self.record.id)

    async def entries(self) -> Sequence[Entry]:
        """The session's log."""
        return await operations.read_log(self._access, self.session) if self.record is not None else ()

    def status(self) -> Status:
        """A new status line for the session. Raises `NoModel`."""
        record = self.record
        route = self.runtime.route(record.model if record is not None else self._invocation.model)
        return Status(
            model=route.name,
            window=route.facts.window,
            session=self.session,
            title=record.title if record is not None else "",
            notice=bool(self.runtime.loaded.notice),
        )

    async def ensure(self) -> SessionRecord:
        """The session, created if there is none."""
        if self.record is None:
            self.record = await self.runtime.hermes.open_session(
                self.conversation, self.runtime.owner, workspace=self.workspace, model=self._invocation.model, new=True
            )
        return self.record

    async def command(self, line: str, *, busy: bool) -> Done | None:
        """Run a slash command; None if the line is an ordinary message. Raises `HermesError`."""
        record = await self.ensure()
        done = await perform(Desk(runtime=self.runtime, record=record, inbound=self.inbound(line), busy=busy))
        if done is not None and done.session and done.session != record.id:
            self.record = await operations.get_session(self._access, done.session)
        else:
            await self.refresh()
        return done

    async def submit(self, inbound: Inbound) -> int | None:
        """Submit a message. Returns its inbox row."""
        record = await self.ensure()
        if self._preload and inbound.parts and not inbound.answers:
            names, self._preload = self._preload, ""
            first = await self.runtime.skills.preloaded(names, record.workspace, record.id, record.conversation)
            inbound = replace(inbound, parts=(first, *inbound.parts))
        return (await self.runtime.hermes.submit(inbound, record.id)).inbox

    async def answer(self, question: str, answer: str) -> None:
        """Answer a question that the run waits with."""
        await self.submit(replace(self.inbound(answer), answers=question))

    async def resume(self) -> bool:
        """Resume work that a crash interrupted; False if there is none, or another process runs it."""
        return self.record is not None and await self.runtime.hermes.resume(self.record.id)

    async def stop(self) -> None:
        """Stop the run at once."""
        if self.record is not None:
            await self.runtime.hermes.stop(self.record.id)

    def inbound(self, text: str) -> Inbound:
        """A message of the person at this terminal."""
        return Inbound(
            source="cli",
            source_id=self.runtime.ids.short(),
            principal=self.runtime.owner,
            conversation=self.conversation,
            parts=(Text(text=text, origin=Origin.OWNER),),
            received=self.runtime.clock.now(),
        )
