"""Access control of all channels: the rules of each, and who may speak."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hermes_agent.app.chats.people import People
from hermes_agent.app.chats.pseudonyms import Pseudonyms
from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.core.inbound import Conversation, Principal, Standing
from hermes_agent.gateway.access import LONGEST_TITLE, Access, harmless, plain
from hermes_agent.gateway.inbound_events import Media, Said, Sender

MOST_NAMED = 100
"""People whom one message names that are hidden: whoever writes it chooses how many there are."""


class AccessControl:
    """The rules of the channels that are switched on. The model and the logs do not see the ids of those whose platform
    `hashes` them, or of all or none where the person says so (`hidden`)."""

    def __init__(
        self,
        settings: Mapping[str, ChannelSettings],
        hashes: Callable[[str], bool] = lambda _: False,
        hidden: bool | None = None,
    ) -> None:
        self.people = People(settings)
        self.pseudonyms = Pseudonyms()
        self._by_platform = hashes
        self.follow(settings, hidden)

    def follow(self, settings: Mapping[str, ChannelSettings], hidden: bool | None) -> None:
        """Have these rules hold from now on; whose ids were hidden stay so."""
        self.people.channels = settings
        self._hidden = hidden
        for name, channel in settings.items():
            if self._hashes(name):
                self.pseudonyms.keep(
                    *channel.owners, *channel.members, *channel.guests, *channel.groups, *channel.chats
                )

    def _hashes(self, channel: str) -> bool:
        return self._by_platform(channel) if self._hidden is None else self._hidden

    def access(self, channel: str) -> Access:
        """The rules of one channel."""
        settings = self.people.channels.get(channel, ChannelSettings())
        return Access(settings=settings, paired=self.people.paired(channel))

    def meet(self, channel: str, sender: Sender, where: Conversation) -> None:
        """Somebody was heard there: they are hidden where the channel's ids are."""
        if self._hashes(channel):
            self.pseudonyms.know(sender.user, where.chat)

    def shown(self, channel: str, text: str) -> str:
        """What was written there, for the model: without ids where the channel's are hidden."""
        return self.pseudonyms.hide(text) if self._hashes(channel) else text

    def read(self, channel: str, said: Said) -> Said:
        """A message of somebody who may speak, as `shown`, with what it quotes and what its files and the place are
        called; whom it names is hidden from now on."""
        if self._hashes(channel):
            self.pseudonyms.know(*said.named[:MOST_NAMED])
        said = replace(said, title=self.shown(channel, plain(said.title))[:LONGEST_TITLE])
        if not self._hashes(channel):
            return said
        hide, quoted = self.pseudonyms.hide, said.quoted

        def files(media: tuple[Media, ...]) -> tuple[Media, ...]:
            return tuple(replace(each, name=hide(each.name)) for each in media)

        if quoted is not None:
            quoted = replace(quoted, text=hide(quoted.text), media=files(quoted.media))
        return replace(said, text=hide(said.text), media=files(said.media), quoted=quoted)

    def principal(self, channel: str, sender: Sender, standing: Standing) -> Principal:
        """Who speaks, remembered where only the groups of the sender say what they are."""
        alias = self.pseudonyms.of(sender.user) if self._hashes(channel) else ""
        name = harmless(self.shown(channel, plain(sender.name or alias)))
        who = Principal(platform=channel, user=sender.user, standing=standing, name=name, alias=alias)
        if sender.groups and self.access(channel).standing(sender.user) is not standing:
            self.people.remember(who.key, standing)
        return who
