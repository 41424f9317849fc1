"""Settings of the gateway: which channels, who may speak there, and how it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Busy
from hermes_agent.host.schema import about, section

OWNERS_COMMANDS = ("yolo", "rollback", "sethome", "restart", "update", "memory", "cost", "usage")
GUESTS_COMMANDS = ("help", "new", "stop", "steer", "queue", "status", "retry", "undo", "continue", "topic", "deny")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """One chat of a channel (section `gateway.channels.NAME.chats.ID`); what is empty is as for the channel."""

    model: str = field(default="", metadata={"doc": "Model of new sessions in this chat."})
    busy: Busy | None = field(default=None, metadata={"doc": "What a message does that arrives during a run."})
    mention: bool | None = field(default=None, metadata={"doc": "Whether a group must name the agent to be heard."})
    shared: bool | None = field(default=None, metadata={"doc": "Whether a group has one session for all."})
    toolsets: tuple[str, ...] = field(
        default=(), metadata={"doc": "Toolsets that this chat is narrowed to; empty: all that its people have."}
    )
    hint: str = field(default="", metadata={"doc": "Words that stand before each message of this chat."})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """One channel (section `gateway.channels.NAME`). People are named by the platform's ids, `*` is everybody."""

    enabled: bool = field(default=False, metadata={"doc": "Whether the gateway listens there."})
    owners: tuple[str, ...] = field(default=(), metadata={"doc": "Ids of whoever owns this agent."})
    members: tuple[str, ...] = field(default=(), metadata={"doc": "Ids of people it works for, and of their groups."})
    guests: tuple[str, ...] = field(
        default=(), metadata={"doc": "Ids of people who may speak to it with the toolsets of guests; `*` is everybody."}
    )
    groups: tuple[str, ...] = field(
        default=(), metadata={"doc": "Ids of group chats in which it answers those who may speak; `*` is every one."}
    )
    pairing: bool = field(default=True, metadata={"doc": "Whether a stranger who writes to it alone is given a code."})
    bots: bool = field(default=False, metadata={"doc": "Whether other programs are heard."})
    mention: bool = field(default=True, metadata={"doc": "Whether a group must name the agent to be heard."})
    shared: bool = field(
        default=False, metadata={"doc": "Whether a group has one session for all; otherwise each person has their own."}
    )
    busy: Busy = field(default=Busy.STEER, metadata={"doc": "What a message does that arrives during a run."})
    stream: bool = field(default=True, metadata={"doc": "Whether replies are shown while they are written."})
    model: str = field(default="", metadata={"doc": "Model of new sessions; empty: the configured one."})
    toolsets: tuple[str, ...] = field(
        default=(), metadata={"doc": "Toolsets that this channel is narrowed to; empty: all that its people have."}
    )
    owner_commands: tuple[str, ...] = field(
        default=OWNERS_COMMANDS, metadata={"doc": "Slash commands that are the owner's alone."}
    )
    guest_commands: tuple[str, ...] = field(
        default=GUESTS_COMMANDS, metadata={"doc": "Slash commands that guests have."}
    )
    home: str = field(
        default="",
        metadata={"doc": "The chat where what belongs to no other is sent, `CHAT[:THREAD]`; `/sethome` sets it."},
    )
    options: Mapping[str, str] = section(dict, "What this channel alone needs.")
    chats: Mapping[str, ChatSettings] = section(dict, "Single chats, by id.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """What the model and the logs are not told."""

    hash_ids: bool | None = field(
        default=None,
        metadata={
            "doc": "Whether ids of people and chats are hashed before the model or the logs see them; empty: where "
            "they are phone numbers or addresses."
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The gateway."""

    channels: Mapping[str, ChannelSettings] = section(dict, "Channels by name: telegram, ...")
    workspace: str = field(
        default="", metadata={"doc": "Folder in which sessions work; empty: `workspace` in the home."}
    )
    max_runs: int = field(
        default=200, metadata=about("Runs at a time; one that waits for a person does not count.", least=1)
    )
    drain_seconds: float = field(
        default=20.0, metadata=about("How long a stop waits for runs under way; the rest goes on later.", least=0)
    )
    largest_file_mb: float = field(
        default=20.0, metadata=about("Largest file that is taken in, in megabytes.", least=0.001, most=1000)
    )
    longest_message: int = field(
        default=100_000, metadata=about("Characters of a message; more is refused with a word.", least=100)
    )
    messages_per_minute: int = field(
        default=60, metadata=about("Messages of one person in a minute; more are refused with a word.", least=1)
    )
