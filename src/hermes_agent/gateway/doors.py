"""The doors of all channels: the rules of each, and who comes in."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_agent.app.service.people import People
from hermes_agent.app.service.settings import ChannelSettings
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.gateway.access import Access, harmless
from hermes_agent.gateway.heard import Sender


class Doors:
    """The rules of the channels that are switched on."""

    def __init__(self, settings: Mapping[str, ChannelSettings]) -> None:
        self.people = People(settings)

    def access(self, channel: str) -> Access:
        """The rules of one channel."""
        settings = self.people.channels.get(channel, ChannelSettings())
        return Access(settings=settings, paired=self.people.paired(channel))

    def principal(self, channel: str, sender: Sender, standing: Standing) -> Principal:
        """Who speaks, remembered where only the groups of the sender say what they are."""
        who = Principal(platform=channel, user=sender.user, standing=standing, name=harmless(sender.name))
        if sender.groups and self.access(channel).standing(sender.user) is not standing:
            self.people.remember(who.key, standing)
        return who
