"""Roles of chat users (owner, member, guest); and the model and toolsets that are configured for a chat."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from hermes_agent.app.chats.settings import ChannelSettings, ChatSettings
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.host.tasks import spawn
from hermes_agent.store.database import Store

EVERYBODY = "*"
NONE, ANY = ChannelSettings(), ChatSettings()
REMEMBERED = 5000
"""People whose standing follows from their groups alone, which are told only when they speak."""


def standing_of(
    settings: ChannelSettings, paired: Collection[str], user: str, groups: Collection[str] = ()
) -> Standing | None:
    """The role of a user id on a channel; None if the user is not allowed to speak. Display names are ignored."""
    if user in settings.owners:
        return Standing.OWNER
    if user in settings.members or user in paired or not set(settings.members).isdisjoint(groups):
        return Standing.MEMBER
    if user in settings.guests or EVERYBODY in settings.guests:
        return Standing.GUEST
    return None


def may(settings: ChannelSettings, standing: Standing, command: str) -> bool:
    """Whether a role may use a slash command on a channel."""
    match standing:
        case Standing.OWNER:
            return True
        case Standing.MEMBER:
            return command not in settings.owner_commands
        case Standing.GUEST:
            return command in settings.guest_commands


class People:
    """In-memory registry of the roles of people on the channels. `meet` loads the users admitted by pairing codes."""

    def __init__(self, channels: Mapping[str, ChannelSettings]) -> None:
        self.channels = channels
        self._paired: Mapping[str, frozenset[str]] = {}
        self._by_group: OrderedDict[str, Standing] = OrderedDict()

    def standing(self, principal: str) -> Standing | None:
        """The role of a principal by its key; None if it belongs to no channel. A user who is no longer allowed
        counts as a guest."""
        platform, _, user = principal.partition(":")
        if platform not in self.channels:
            return None
        own = standing_of(self.channels[platform], self.paired(platform), user)
        return own or self._by_group.get(principal, Standing.GUEST)

    def model(self, where: Conversation) -> str:
        """The configured model for new sessions in this chat; empty: the default model."""
        rules = self.channels.get(where.platform, NONE)
        return rules.chats.get(where.chat, ANY).model or rules.model

    def toolsets(self, conversation: str) -> tuple[str, ...]:
        """The toolsets to which this conversation (by key) is restricted; empty: all that its people have."""
        where = Conversation.parse(conversation)
        rules = self.channels.get(where.platform, NONE)
        return rules.chats.get(where.chat, ANY).toolsets or rules.toolsets

    def otherwise(self, standing: Callable[[str], Standing]) -> Callable[[str], Standing]:
        """A role lookup: channel users by this registry, everybody else by `standing`."""
        return lambda principal: self.standing(principal) or standing(principal)

    def paired(self, channel: str) -> frozenset[str]:
        """Ids of users admitted to the channel by a pairing code."""
        return self._paired.get(channel, frozenset())

    def let_in(self, paired: Iterable[tuple[str, str]]) -> None:
        """Replace the users admitted by pairing codes with these (channel, user) pairs."""
        users: defaultdict[str, set[str]] = defaultdict(set)
        for channel, user in paired:
            users[channel].add(user)
        self._paired = {channel: frozenset(each) for channel, each in users.items()}

    def remember(self, principal: str, standing: Standing) -> None:
        """Remember a role that follows from a user's group membership."""
        self._by_group[principal] = standing
        while len(self._by_group) > REMEMBERED:
            self._by_group.popitem(last=False)

    async def meet(self, store: Store) -> None:
        """Load the users admitted by pairing codes. Raises `StoreError`."""
        self.let_in((known.channel, known.user) for known in await store.pairing.paired())


async def keep_met(people: People, store: Store, subscribe: Callable[[Callable[[], None]], None] | None) -> None:
    """Load the admitted users now and after each change in another process. Without `subscribe` (see
    `Scheduler.subscribe`) nothing is loaded: the process serves only its own person."""
    if subscribe is None:
        return
    await people.meet(store)

    def meet() -> None:
        spawn(people.meet(store), name="people")

    subscribe(meet)
