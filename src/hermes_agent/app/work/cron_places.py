"""Where the results of scheduled jobs go, and where their scripts stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hermes_agent.app.chats.settings import GatewaySettings, homes_in, place_named
from hermes_agent.core.chat import Conversation, Standings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.paths import Home
from hermes_agent.store.work.cron.records import Job

ORIGIN, LOCAL, ALL = "origin", "local", "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """The chats of a job's letters, by the settings of the channels."""

    gateway: GatewaySettings
    standings: Standings

    def targets(self, job: Job) -> Sequence[Conversation]:
        """The chats that its results go to."""
        found = [each for target in job.plan.deliver for each in self._named(target, job)]
        return list({each.key: each for each in found}.values())

    def homes(self, job: Job) -> Sequence[Conversation]:
        """The chats that are told of failures: the home of the owner, or where a member made the job."""
        origin = self._named(ORIGIN, job)
        if not self.standings.is_owner(job.principal) and origin:
            return origin
        homes = self._named(ALL, job)
        made_in = [each for each in homes if each.platform == job.plan.origin.partition(":")[0]]
        return (made_in or homes or origin)[:1]

    def _named(self, target: str, job: Job) -> list[Conversation]:
        channels = self.gateway.channels
        if target == LOCAL:
            return []
        if target == ALL:
            return homes_in(channels)
        if target == ORIGIN:
            made_in = Conversation.parse(job.plan.origin) if job.plan.origin else None
            return [made_in.place] if made_in is not None and made_in.platform in channels else []
        found = place_named(target, channels)
        return [found] if found is not None else []


def scripts_in(home: Home) -> Path:
    """The folder of the scripts of jobs."""
    return home.root / "scripts"
