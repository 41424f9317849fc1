"""The doors of all channels: what somebody is, by the key under which everything of theirs is kept."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping

from hermes_agent.app.service.settings import ChannelSettings
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.gateway.access import Access
from hermes_agent.gateway.heard import Sender

REMEMBERED = 5000
LOCAL = ("cli", "library")


class Doors:
    """The rules of the channels that are switched on. `standing` answers at once, from memory."""

    def __init__(self, settings: Mapping[str, ChannelSettings]) -> None:
        self._settings = settings
        self._paired: Mapping[str, frozenset[str]] = {}
        self._by_group: OrderedDict[str, Standing] = OrderedDict()

    def let_in(self, paired: Iterable[tuple[str, str]]) -> None:
        """Who was let in by a code, as (channel, user), all of them."""
        users: defaultdict[str, set[str]] = defaultdict(set)
        for channel, user in paired:
            users[channel].add(user)
        self._paired = {channel: frozenset(each) for channel, each in users.items()}

    def change(self, settings: Mapping[str, ChannelSettings]) -> None:
        """Other rules hold from now on."""
        self._settings = settings
        self._by_group.clear()

    def access(self, channel: str) -> Access:
        """The rules of one channel."""
        return Access(
            settings=self._settings.get(channel, ChannelSettings()), paired=self._paired.get(channel, frozenset())
        )

    def standing(self, principal: str) -> Standing:
        """What the principal of that key is; who may not speak any more is a guest."""
        platform, _, user = principal.partition(":")
        if platform in LOCAL:
            return Standing.OWNER
        own = self.access(platform).standing(user)
        return own or self._by_group.get(principal, Standing.GUEST)

    def principal(self, channel: str, sender: Sender, standing: Standing) -> Principal:
        """Who speaks, remembered where only the groups of the sender say what they are."""
        who = Principal(platform=channel, user=sender.user, standing=standing, name=sender.name)
        if sender.groups and self.access(channel).standing(sender.user) is not standing:
            self._by_group[who.key] = standing
            while len(self._by_group) > REMEMBERED:
                self._by_group.popitem(last=False)
        return who
