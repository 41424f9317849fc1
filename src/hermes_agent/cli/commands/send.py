"""`hermes send`: a message to a chat, through the outbox like everything else."""

from __future__ import annotations

import mimetypes
import sys
from functools import partial
from pathlib import Path

import click

from hermes_agent.app.chats.home_chats import place_named
from hermes_agent.app.chats.settings import GatewaySettings
from hermes_agent.app.operations import chats
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import remark, say
from hermes_agent.cli.surface import Surface, pass_surface
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Attachment, Content, Letter, SlotState
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.state import read_state

PATIENCE = 30.0
"""Seconds that are waited for the receipt."""


@click.command(short_help="Send a message to a chat.")
@click.option(
    "-t",
    "--target",
    required=True,
    metavar="CHANNEL[:CHAT[:THREAD]]",
    help="Where, e.g. telegram:123456; a channel alone: its home chat.",
)
@click.option("--file", "files", multiple=True, type=click.Path(exists=True, dir_okay=False), help="A file to add.")
@click.argument("words", nargs=-1)
@pass_surface
def send(surface: Surface, target: str, files: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Send a message; without words, standard input. The gateway delivers it."""
    text = " ".join(words) or sys.stdin.read()
    if not text.strip() and not files:
        raise ConfigError("There is nothing to send.")
    content = Content(text=text, files=tuple(map(_attachment, files)))
    letter = Letter(
        key=f"send:{RandomIds().short()}", to=place_of(target, surface.loaded.value.gateway), content=content
    )
    patience = PATIENCE if read_state(surface.home) is not None else 0.0
    slot = ask(surface, partial(chats.send, letter=letter, patience=patience))
    if slot is not None and slot.state is SlotState.FAILED:
        raise HermesError(f"It could not be sent: {slot.error}")
    if slot is not None and slot.state is SlotState.SENT:
        say("Sent.")
    else:
        remark("Queued in the outbox: " + ("the gateway delivers it." if patience else "no gateway runs now."))


def place_of(target: str, settings: GatewaySettings | None = None) -> Conversation:
    """The chat that a target names; a channel alone names its home (`/sethome`). Raises `ConfigError`."""
    place = place_named(target, settings.channels if settings else {})
    if place is None or place.platform not in CHANNELS:
        raise ConfigError(
            f"`{target}` names no chat: CHANNEL:CHAT[:THREAD], or a channel that has a home (`/sethome`), "
            f"with {', '.join(CHANNELS)}."
        )
    return place


def _attachment(path: str) -> Attachment:
    whole = Path(path).resolve()
    media_type = mimetypes.guess_type(whole.name)[0] or "application/octet-stream"
    return Attachment(path=str(whole), name=whole.name, media_type=media_type)
