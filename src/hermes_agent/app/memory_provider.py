"""The memory provider named in the settings: recall for sessions, tools, and a separate space for each person."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hermes_agent.core.chat import Standings
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.tool import CallContext
from hermes_agent.host.http import Http
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import Home, environment
from hermes_agent.host.secrets import Secrets
from hermes_agent.memory.backend import Backend, Needs as BackendNeeds
from hermes_agent.memory.backends import BACKENDS, TOOLS
from hermes_agent.memory.recall import Recall, RecallTools
from hermes_agent.memory.settings import MemorySettings, Person, person_of, space_in
from hermes_agent.sandbox.jail import scrubbed
from hermes_agent.store.database import Store
from hermes_agent.store.facts.facts import Source
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Author

log = logging.getLogger(__name__)


class MemoryProvider:
    """Gives sessions and tools the configured memory provider, one backend per person. Unused if none is named."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._settings, self._store = needs.get(MemorySettings), needs.later(Store)
        self._is_owner = needs.get(Standings).is_owner
        self._recalls: dict[str, Recall] = {}
        self._sessions: dict[str, str] = {}

    def recall(self, record: Session) -> Recall | None:
        """The recall of a session; None if other people read the conversation or the backend cannot be built
        (`hermes doctor` says why). Ends the conversation's previous session in the memory."""
        person = person_of(record.principal, self._is_owner, record.conversation)
        try:
            recall = None if person.shared else self._recall(person)
        except HermesError as error:
            log.warning("memory: %s", error)
            return None
        before = self._sessions.get(record.conversation)
        if recall and before and before != record.id:
            recall.ended(before)
        self._sessions[record.conversation] = record.id
        return recall

    def tools(self) -> Sequence[object]:
        """The tools of the memory."""
        provider = self._settings.provider
        more = [late(TOOLS[provider])(self._for, self._source)] if provider in TOOLS else []
        return [RecallTools(self._for, self._source), *more]

    async def close(self) -> None:
        """Flush what is being written, for a short time."""
        for recall in self._recalls.values():
            await recall.close()

    async def _for(self, context: CallContext) -> Backend:
        record = await self._store().sessions.get(context.session)
        key = context.speaker or (record.principal if record else "")
        person = person_of(key, self._is_owner, record.conversation if record else "")
        if person.shared or not key:
            raise ToolError("Other people can read this chat, so nobody's memory is used.")
        return self._recall(person).backend

    async def _source(self, context: CallContext) -> Source:
        record = await self._store().sessions.get(context.session)
        return Source(
            author=Author.FOREGROUND,
            principal=context.speaker or (record.principal if record else ""),
            session=context.session,
            first=await self._store().history.said_at(context.session),
            last=await self._store().history.last_number(context.session),
            key=context.key,
        )

    def _recall(self, person: Person) -> Recall:
        if person.space not in self._recalls:
            self._recalls[person.space] = Recall(self.backend(person), self._needs.get(Clock))
        return self._recalls[person.space]

    def backend(self, person: Person) -> Backend:
        """The memory backend of a person. Raises `HermesError`."""
        needs = BackendNeeds(
            http=self._needs.get(Http),
            secret=self._needs.get(Secrets).get,
            url=self._settings.provider_url,
            space=space_in(self._settings.provider_space, person),
            store=self._store(),
            clock=self._needs.get(Clock),
            folder=self._needs.get(Home).memories,
            environment=scrubbed(environment()),
        )
        made: Backend = late(BACKENDS[self._settings.provider])(needs)
        return made
