"""The doors of all channels: the rules of each, and who comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hermes_agent.app.service.people import People
from hermes_agent.app.service.settings import ChannelSettings
from hermes_agent.app.service.veil import Veil
from hermes_agent.core.inbound import Conversation, Principal, Standing
from hermes_agent.gateway.access import Access, harmless
from hermes_agent.gateway.heard import Sender


class Doors:
    """The rules of the channels that are switched on. The model and the logs do not see the ids of those whose platform
    `hashes` them, or of all or none where the person says so (`hidden`)."""

    def __init__(
        self,
        settings: Mapping[str, ChannelSettings],
        hashes: Callable[[str], bool] = lambda _: False,
        hidden: bool | None = None,
    ) -> None:
        self.people = People(settings)
        self.veil = Veil()
        self._by_platform = hashes
        self.follow(settings, hidden)

    def follow(self, settings: Mapping[str, ChannelSettings], hidden: bool | None) -> None:
        """Have these rules hold from now on; whose ids were hidden stay so."""
        self.people.channels = settings
        self._hidden = hidden
        for name, channel in settings.items():
            if self._hashes(name):
                self.veil.know(*channel.owners, *channel.members, *channel.guests, *channel.groups, *channel.chats)

    def _hashes(self, channel: str) -> bool:
        return self._by_platform(channel) if self._hidden is None else self._hidden

    def access(self, channel: str) -> Access:
        """The rules of one channel."""
        settings = self.people.channels.get(channel, ChannelSettings())
        return Access(settings=settings, paired=self.people.paired(channel))

    def meet(self, channel: str, sender: Sender, where: Conversation) -> None:
        """Somebody was heard there: what the logs show of it is hidden where the channel's ids are."""
        if self._hashes(channel):
            self.veil.know(sender.user, where.chat)

    def named(self, channel: str, sender: Sender) -> str:
        """The name of somebody for the model, which is never their id where the channel's ids are hidden."""
        if not self._hashes(channel):
            return sender.name
        return self.veil.hide(sender.name) or self.veil.of(sender.user)

    def principal(self, channel: str, sender: Sender, standing: Standing) -> Principal:
        """Who speaks, remembered where only the groups of the sender say what they are."""
        name = harmless(self.named(channel, sender))
        who = Principal(platform=channel, user=sender.user, standing=standing, name=name)
        if sender.groups and self.access(channel).standing(sender.user) is not standing:
            self.people.remember(who.key, standing)
        return who
