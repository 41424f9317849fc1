"""Settings of the gateway: channels, who may speak there, how it answers; and parsing of chats named in settings."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_agent.core.chat import Busy, Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.schema import section, setting

OWNERS_COMMANDS = (
    "yolo",
    "rollback",
    "sethome",
    "restart",
    "update",
    "memory",
    "cost",
    "usage",
    "config",
    "permissions",
)
GUESTS_COMMANDS = ("help", "new", "stop", "steer", "queue", "status", "retry", "undo", "continue", "topic", "deny")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """Settings of one chat (section `gateway.channels.NAME.chats.ID`); empty values are inherited from the channel."""

    model: str = setting("", "Model of new sessions in this chat.")
    busy: Busy | None = setting(None, "What to do with a message that arrives during a run.")
    mention: bool | None = setting(None, "Whether the agent answers in a group only when it is named.")
    shared: bool | None = setting(None, "Whether a group has one session for all.")
    toolsets: tuple[str, ...] = setting((), "The only toolsets in this chat; empty: all that its people have.")
    hint: str = setting("", "Text to put before each message of this chat.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """Settings of one channel (section `gateway.channels.NAME`). People are given by platform ids; `*` is everybody."""

    enabled: bool = setting(False, "Whether the gateway listens there.")
    owners: tuple[str, ...] = setting((), "Ids of the owners.")
    members: tuple[str, ...] = setting((), "Ids of people it works for, and of their groups.")
    guests: tuple[str, ...] = setting(
        (), "Ids of people who may speak to it with the toolsets of guests; `*` is everybody."
    )
    groups: tuple[str, ...] = setting(
        (), "Ids of group chats in which it answers people who may speak; `*` is every group."
    )
    pairing: bool = setting(True, "Whether a stranger gets a pairing code in a private chat.")
    bots: bool = setting(False, "Whether to read messages of other bots.")
    mention: bool = setting(True, "Whether the agent answers in a group only when it is named.")
    shared: bool = setting(False, "Whether a group has one session for all; otherwise each person has their own.")
    busy: Busy = setting(Busy.STEER, "What to do with a message that arrives during a run.")
    stream: bool = setting(True, "Whether to show replies while the model writes them.")
    model: str = setting("", "Model of new sessions; empty: the configured one.")
    toolsets: tuple[str, ...] = setting((), "The only toolsets on this channel; empty: all that its people have.")
    owner_commands: tuple[str, ...] = setting(OWNERS_COMMANDS, "Slash commands that only owners may use.")
    guest_commands: tuple[str, ...] = setting(GUESTS_COMMANDS, "Slash commands that guests may use.")
    home: str = setting("", "The home chat, for messages that belong to no chat: `CHAT[:THREAD]`; `/sethome` sets it.")
    options: Mapping[str, str] = section(dict, "Options of this kind of channel.")
    chats: Mapping[str, ChatSettings] = section(dict, "Settings of single chats, by id.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """Settings of pseudonyms: what to hide from the model and the logs."""

    hash_ids: bool | None = setting(
        None,
        "Whether to hash ids of people and chats for the model and the logs; empty: only phone numbers and addresses.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Settings of the gateway process, with its channels."""

    channels: Mapping[str, ChannelSettings] = section(dict, "Channels by name: telegram, ...")
    workspace: str = setting("", "Folder in which sessions work; empty: `workspace` in the home.")
    max_runs: int = setting(200, "Runs at a time; one that waits for a person does not count.", least=1)
    drain_seconds: float = setting(
        20.0, "How long a stop waits for active runs; unfinished ones resume later.", least=0
    )
    largest_file_mb: float = setting(20.0, "Largest file to accept, in megabytes.", least=0.001, most=1000)
    longest_message: int = setting(
        10_000_000, "Most characters of a message; a longer one is refused with a notice.", least=100
    )
    messages_per_minute: int = setting(
        60, "Messages of one person in a minute; more are not read, with one notice.", least=1
    )


KINDS = frozenset({"dm", "group"})


def home_of(place: Conversation) -> str:
    """Format a chat as a value of the setting `home`."""
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in (place.chat, place.thread) if part)


def place_at(channel: str, home: str) -> Conversation | None:
    """Parse a value of the setting `home` into a chat; None if it names none."""
    chat, _, thread = home.partition(":")
    if not chat:
        return None
    chat, thread = (part.replace("%3A", ":").replace("%25", "%") for part in (chat, thread))
    return Conversation(platform=channel, chat_kind="group" if chat.startswith("-") else "dm", chat=chat, thread=thread)


def place_named(target: str, channels: Mapping[str, ChannelSettings]) -> Conversation | None:
    """Parse a delivery target: `CHANNEL[:CHAT[:THREAD]]` (a channel alone means its home chat) or
    `CHANNEL:KIND:CHAT[:THREAD]`. None if it names no chat."""
    channel, _, rest = target.partition(":")
    if rest.partition(":")[0] in KINDS:
        place = Conversation.parse(target)
        return place if place.chat else None
    if not rest and channel in channels:
        rest = channels[channel].home
    return place_at(channel, rest) if channel else None


def homes_in(channels: Mapping[str, ChannelSettings]) -> list[Conversation]:
    """The home chats of all channels."""
    return [place for name, each in channels.items() if (place := place_at(name, each.home)) is not None]
