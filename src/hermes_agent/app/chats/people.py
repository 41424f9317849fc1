"""What the people of chat platforms are to this agent, by the settings and by who was let in, in every process."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from hermes_agent.app.chats.settings import ChannelSettings, ChatSettings
from hermes_agent.core.inbound import Conversation, Standing
from hermes_agent.host.tasks import spawn
from hermes_agent.store.database import Store

EVERYBODY = "*"
NONE, ANY = ChannelSettings(), ChatSettings()
REMEMBERED = 5000
"""People whose standing follows from their groups alone, which are told only when they speak."""


def standing_of(
    settings: ChannelSettings, paired: Collection[str], user: str, groups: Collection[str] = ()
) -> Standing | None:
    """What somebody is on a channel; None where they may not speak. Names count for nothing."""
    if user in settings.owners:
        return Standing.OWNER
    if user in settings.members or user in paired or not set(settings.members).isdisjoint(groups):
        return Standing.MEMBER
    if user in settings.guests or EVERYBODY in settings.guests:
        return Standing.GUEST
    return None


def may(settings: ChannelSettings, standing: Standing, command: str) -> bool:
    """Whether somebody has a slash command on a channel."""
    match standing:
        case Standing.OWNER:
            return True
        case Standing.MEMBER:
            return command not in settings.owner_commands
        case Standing.GUEST:
            return command in settings.guest_commands


class People:
    """The people of these channels. Everything is answered at once, from memory; `meet` reads who was let in."""

    def __init__(self, channels: Mapping[str, ChannelSettings]) -> None:
        self.channels = channels
        self._paired: Mapping[str, frozenset[str]] = {}
        self._by_group: OrderedDict[str, Standing] = OrderedDict()

    def standing(self, principal: str) -> Standing | None:
        """What the principal of that key is; None where it is of no channel. Who may not speak any more is a guest."""
        platform, _, user = principal.partition(":")
        if platform not in self.channels:
            return None
        own = standing_of(self.channels[platform], self.paired(platform), user)
        return own or self._by_group.get(principal, Standing.GUEST)

    def model(self, where: Conversation) -> str:
        """The model of new sessions there; empty: the configured one."""
        rules = self.channels.get(where.platform, NONE)
        return rules.chats.get(where.chat, ANY).model or rules.model

    def toolsets(self, conversation: str) -> tuple[str, ...]:
        """The toolsets that a conversation, by its key, is narrowed to; empty: all that its people have."""
        where = Conversation.parse(conversation)
        rules = self.channels.get(where.platform, NONE)
        return rules.chats.get(where.chat, ANY).toolsets or rules.toolsets

    def otherwise(self, standing: Callable[[str], Standing]) -> Callable[[str], Standing]:
        """What everybody is: here for the people of channels, elsewhere as `standing` says."""
        return lambda principal: self.standing(principal) or standing(principal)

    def paired(self, channel: str) -> frozenset[str]:
        """The ids of those who were let in there by a code."""
        return self._paired.get(channel, frozenset())

    def let_in(self, paired: Iterable[tuple[str, str]]) -> None:
        """Who was let in by a code, as (channel, user), all of them."""
        users: defaultdict[str, set[str]] = defaultdict(set)
        for channel, user in paired:
            users[channel].add(user)
        self._paired = {channel: frozenset(each) for channel, each in users.items()}

    def remember(self, principal: str, standing: Standing) -> None:
        """Somebody is this because of a group that they are in."""
        self._by_group[principal] = standing
        while len(self._by_group) > REMEMBERED:
            self._by_group.popitem(last=False)

    async def meet(self, store: Store) -> None:
        """Read who was let in. Raises `StoreError`."""
        self.let_in((known.channel, known.user) for known in await store.pairing.paired())


async def keep_met(people: People, store: Store, subscribe: Callable[[Callable[[], None]], None] | None) -> None:
    """Read who was let in, now and at each change in another process. Without `subscribe` (see
    `Scheduler.subscribe`), this process serves nobody else, and nothing is read."""
    if subscribe is None:
        return
    await people.meet(store)

    def meet() -> None:
        spawn(people.meet(store), name="people")

    subscribe(meet)
