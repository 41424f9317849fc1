"""What every endpoint works with: the system, who may come in, and what is counted."""

from __future__ import annotations

import asyncio
from dataclasses import field

from hermes_agent.api.keys import Keys
from hermes_agent.api.metrics import Metrics
from hermes_agent.api.service import AgentService
from hermes_agent.app.api_settings import ApiSettings
from hermes_agent.app.session_access import SessionAccess
from hermes_agent.app.system import System
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """One server's parts. `ending` is set when it is to end: who only watches comes back to another process."""

    runtime: System
    keys: Keys
    service: AgentService
    metrics: Metrics
    ending: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def settings(self) -> ApiSettings:
        """The settings in force."""
        return self.runtime.settings.api

    def access(self, who: Principal) -> SessionAccess:
        """What this person may do with sessions."""
        return SessionAccess(runtime=self.runtime, who=who)
