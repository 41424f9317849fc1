"""What every endpoint works with: the system, who may come in, and what is counted."""

from __future__ import annotations

import asyncio
from dataclasses import field

from hermes_agent.api.figures import Figures
from hermes_agent.api.keys import Keys
from hermes_agent.api.talk import Talk
from hermes_agent.app.runtime import Runtime
from hermes_agent.app.serving.settings import ApiSettings
from hermes_agent.app.visits.visit import Visit
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One server's parts. `ending` is set when it is to end: who only watches comes back to another process."""

    runtime: Runtime
    keys: Keys
    talk: Talk
    figures: Figures
    ending: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def settings(self) -> ApiSettings:
        """The settings in force."""
        return self.runtime.settings.api

    def visit(self, who: Principal) -> Visit:
        """What this person may do with sessions."""
        return Visit(runtime=self.runtime, who=who)
