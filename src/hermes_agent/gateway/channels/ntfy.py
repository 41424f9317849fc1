"""ntfy channel: topics as chats; receives a stream of JSON lines, sends by POST."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from math import inf
from typing import Any
from urllib.parse import quote

from hermes_agent.core.chat import Button, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import (
    ANYBODY,
    Abilities,
    Channel,
    ChannelError,
    Hear,
    Heard,
    Kind,
    Media,
    Needs,
    NeverHere,
    NotNow,
    Option,
    Pace,
    Part,
    Pressed,
    Said,
    Sender,
    TokenRefused,
    Unit,
)
from hermes_agent.gateway.dispatcher import KeptCursor, dispatching, is_control
from hermes_agent.gateway.service import Answer, Service, refusal, upload

PLATFORM = "ntfy"
SERVER = "https://ntfy.sh"
OWN, PRESS = "hermes-", "hermes:"
"""How the sequence ids of the agent's own messages begin, and the words that a button sends."""
"""Who speaks where everybody who knows the topic may."""
FRESH_SECONDS = 600
"""How old a message may be that is taken in where the agent begins without a place to go on from."""
SILENCE_SECONDS = 120.0
"""A server says every 45 seconds that the stream is alive."""
OLDEST = (2, 16)
"""The version since which a message that is sent again under the same sequence id is one message."""


class Ntfy(Channel):
    """`Channel` adapter for topics of one ntfy server: the first topic is a private chat, the others are groups."""

    def __init__(self, needs: Needs, base: str, topics: tuple[str, ...]) -> None:
        self._token, self._press_token = needs.secret("NTFY_TOKEN"), needs.secret("NTFY_BUTTON_TOKEN")
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        self._service = Service(title="ntfy", http=needs.http, headers=headers, base=base, meaning=meaning)
        self._base = base
        self._topics = topics
        self._needs = needs
        self._user = topics[0] if self._token else ANYBODY

    async def listen(self, hear: Hear) -> None:
        await self.check()
        since = str(int(self._needs.clock.now()) - FRESH_SECONDS)
        kept = await KeptCursor.begin(self._needs.kept, f"channel:{PLATFORM}:{','.join(self._topics)}", since)
        address = f"{self._base}/{','.join(self._topics)}/json?since={quote(kept.mark)}"
        async with dispatching() as dispatcher, aclosing(self._service.lines(address, SILENCE_SECONDS)) as lines:
            async for line in lines:
                if line.get("event") != "message" or str(line.get("sequence_id", "")).startswith(OWN):
                    continue
                words = str(line.get("message", ""))
                job = partial(self._take, line, hear, kept.open(str(line["id"])))
                control = words.startswith(PRESS) or is_control(words)
                await dispatcher.put(str(line["topic"]), job, control=control)
        raise NotNow("ntfy ended the stream.")

    async def _take(self, line: Mapping[str, Any], hear: Hear, taken: KeptCursor.Taken) -> None:
        await hear(self._heard(line))
        await taken()

    def _heard(self, line: Mapping[str, Any]) -> Heard:
        topic, id_, words = str(line["topic"]), str(line["id"]), str(line.get("message", ""))
        alone = topic == self._topics[0]
        where = Conversation(platform=PLATFORM, chat_kind="dm" if alone else "group", chat=topic)
        sender, at = Sender(user=self._user, name=""), float(line.get("time") or self._needs.clock.now())
        slot, _, choice = words.removeprefix(PRESS).partition(":")
        if words.startswith(PRESS) and slot.isdecimal() and choice.isdecimal():
            return Pressed(source_id=id_, where=where, sender=sender, slot=int(slot), choice=int(choice), at=at)
        file = line.get("attachment") or {}
        media = Media(
            name=str(file.get("name") or "file"),
            media_type=str(file.get("type") or "application/octet-stream"),
            size=int(file.get("size") or 0),
            reference=str(file.get("url", "")),
        )
        return Said(
            source_id=id_,
            where=where,
            sender=sender,
            text="\n\n".join(filter(None, (str(line.get("title") or ""), words))),
            at=at,
            media=(media,) if file else (),
            addressed=alone,
            title="" if alone else topic,
        )

    async def fetch(self, media: Media, most: int) -> bytes:
        """Download a file, only from this server: the token is sent nowhere else."""
        if not media.reference.startswith(f"{self._base}/file/"):
            raise NeverHere("it is not kept by this ntfy server.")
        return await self._service.fetch(media.reference, most)

    async def send(self, to: Conversation, part: Part, key: str) -> str:
        id_ = f"{OWN}{hashlib.sha256(key.encode()).hexdigest()[:40]}"
        if part.file is not None:
            path = f"{quote(to.chat)}/{id_}?filename={quote(part.file.name)}&message={quote(part.text)}"
            await self._service.ask("PUT", path, await upload(part.file))
            return id_
        buttons = [self._button(to.chat, part.slot, at, each) for at, each in enumerate(part.buttons)]
        actions = buttons if self._press_token or not self._token else []
        content = {"topic": to.chat, "message": part.text, "markdown": True, "sequence_id": id_, "actions": actions}
        await self._service.ask("POST", "", content)
        return id_

    def _button(self, topic: str, slot: int, number: int, button: Button) -> dict[str, Any]:
        """A button that posts its number to the topic; with access tokens it uses one that can do nothing else."""
        headers = {"Authorization": f"Bearer {self._press_token}"} if self._press_token else {}
        told = {"url": f"{self._base}/{quote(topic)}", "body": f"{PRESS}{slot}:{number}", "headers": headers}
        return {"action": "http", "label": button.label, "method": "POST", "clear": True, **told}

    async def check(self) -> str:
        found = await self._service.ask("GET", "v1/version", reads=True)
        number = str(found.get("version", "")).removeprefix("v").split(".")
        if tuple(int(each) if each.isdecimal() else 0 for each in number[:2]) < OLDEST:
            raise TokenRefused(f"ntfy {'.'.join(number)} is too old: 2.16 or later is needed.")
        open_ = Service(title="ntfy", http=self._needs.http, judge=lambda answer, _: answer)
        anybody = await open_.call("GET", f"{self._base}/{quote(self._topics[0])}/auth", reads=True)
        self._user = self._topics[0] if anybody.status in (401, 403) and self._token else ANYBODY
        self._needs.note("" if self._user != ANYBODY else "everybody who knows the topic may speak: reserve it")
        return f"the topic {self._topics[0]}"


def meaning(answer: Answer) -> ChannelError:
    """Map an error response to a `ChannelError`."""
    if answer.status == 403:
        return TokenRefused("ntfy does not accept NTFY_TOKEN for this topic.")
    return refusal(answer)


def make(needs: Needs) -> Channel:
    """Factory of the ntfy channel. Raises `ConfigError`."""
    options = {name: needs.options.get(name) or option.default for name, option in OPTIONS.items()}
    topics = (options["topic"], *options["groups"].split())
    if not all(each and quote(each, safe="") == each for each in topics):
        raise ConfigError("gateway.channels.ntfy.options.topic is missing: the topic that only you and the agent know.")
    return Ntfy(needs, options["server"].rstrip("/"), topics)


OPTIONS = {
    "topic": Option(doc="The topic of one person: letters, digits, `_` and `-`.", asked=True),
    "groups": Option(doc="Topics of several people, with spaces between them."),
    "server": Option(doc="Where the ntfy server is.", default=SERVER),
}

CHANNEL = Kind(
    name=PLATFORM,
    title="ntfy",
    abilities=Abilities(
        longest_message=4096, unit=Unit.BYTES, buttons=3, largest_file=15_000_000, keyed=inf, fences=True
    ),
    pace=Pace(every=1.0, chat=5.0, group=5.0),
    secrets=("NTFY_TOKEN", "NTFY_BUTTON_TOKEN"),
    account=("server", "topic"),
    setup=(
        "Reserve a topic on an ntfy server of version 2.16 or later (https://ntfy.sh, or your own), so that nobody "
        "else reads or writes it; put its name into gateway.channels.ntfy.options.topic.",
        "Make an access token: that is the NTFY_TOKEN. Without one everybody who knows the topic may speak, and nobody "
        "is an owner.",
        "For buttons make a token of a user who may only write to the topic: NTFY_BUTTON_TOKEN. It stands in messages "
        "with buttons; leave it out and answer in words.",
        "Your id is the topic's name.",
    ),
    make=make,
    options=OPTIONS,
)
