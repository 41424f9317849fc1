"""The Matrix channel and the gateway against a real homeserver (Synapse), with people at matrix-nio's client."""

import asyncio
import io
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.gateway.channel import (
    ChannelError,
    Heard,
    Invited,
    MessageGone,
    NeverHere,
    NotNow,
    Part,
    Pressed,
    Removed,
    Said,
    TokenRefused,
    Withdrawn,
)
from hermes_agent.gateway.channels.matrix import CHANNEL
from tests.contracts.channels import needs
from tests.gateway.matrix.synapse import SERVER, Person, Synapse, is_installed, person

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        not is_installed(), reason="matrix-synapse is not installed (it has builds for Linux and macOS)"
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nio"),
]
names = (f"{number}x{time.time_ns()}" for number in range(10_000))


class Ear:
    def __init__(self, knows: Callable[[str], bool]) -> None:
        self.heard: list[Heard] = []
        self.knows = knows

    async def __call__(self, heard: Heard) -> str:
        self.heard.append(heard)
        return "welcome" if isinstance(heard, Invited) and self.knows(heard.sender.user) else ""

    def of(self, kind: type) -> list:
        return [heard for heard in self.heard if isinstance(heard, kind)]


class Play:
    """An account of the agent on a server, and Ann's."""

    def __init__(self, server: Synapse, folder: Path) -> None:
        self.server = server
        self.name = f"hermes{next(names)}"
        self.own = f"@{self.name}:{SERVER}"
        token, _ = server.token(self.name)
        self.needs = needs(folder, {"homeserver": server.url}, token)
        self.channel = CHANNEL.make(self.needs)
        self.ear = Ear(lambda user: not user.startswith("@mallory"))

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async def again() -> None:
            while True:
                with suppress(NotNow):
                    await self.channel.listen(self.ear)
                await asyncio.sleep(0.2)

        task = asyncio.create_task(again())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def meeting(self, ann: Person, *others: Person) -> str:
        """A room of Ann's in which the agent is."""
        room = await ann.room(self.own, *(other.id for other in others))
        for other in others:
            await other.client.join(room)
        await ann.meets(room, self.own)
        return room


async def until(ready: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not ready():
            await asyncio.sleep(0.05)


@pytest.fixture
async def play(server: Synapse, tmp_path: Path) -> AsyncIterator[Play]:
    made = Play(server, tmp_path)
    yield made
    await made.channel.close()
    await made.needs.http.close()


@pytest.fixture
async def ann(server: Synapse) -> AsyncIterator[Person]:
    async with person(server, f"ann{next(names)}") as made:
        yield made


async def test_an_invitation_is_taken_and_what_was_said_before_it_came_is_heard(play: Play, ann: Person):
    room = await ann.room(play.own)
    await ann.say(room, "Are you there?")

    async with play.listening():
        await until(lambda: bool(play.ear.of(Said)))

    (said,) = play.ear.of(Said)
    assert (said.text, said.where.chat_kind, said.where.chat) == ("Are you there?", "dm", room)
    assert said.sender.user == ann.id
    assert said.sender.name == ann.id[1:].partition(":")[0].capitalize()
    await play.channel.check()


async def test_an_invitation_of_a_stranger_is_left_alone(play: Play, server: Synapse, ann: Person):
    async with play.listening(), person(server, f"mallory{next(names)}") as mallory:
        room = await mallory.room(play.own)
        await play.meeting(ann)

        members = await mallory.client.joined_members(room)
    assert [member.user_id for member in members.members] == [mallory.id]


async def test_the_same_key_makes_one_event(play: Play, ann: Person):
    async with play.listening():
        room = await play.meeting(ann)
        to = Conversation(platform="matrix", chat=room)
        one = await play.channel.send(to, Part(text="Once"), "k1")
        two = await play.channel.send(to, Part(text="Once"), "k1")

        assert one == two
        assert [each["body"] for each in await ann.of(room, play.own)] == ["Once"]


async def test_a_message_is_changed_and_taken_away_and_then_gone(play: Play, ann: Person):
    async with play.listening():
        room = await play.meeting(ann)
        to = Conversation(platform="matrix", chat=room)
        receipt = await play.channel.send(to, Part(text="One"), "k1")
        await play.channel.edit(to, receipt, Part(text="**Two**"))
        await play.channel.edit(to, receipt, Part(text="**Two**"))
        (shown,) = await ann.of(room, play.own)
        assert (shown["body"], shown["formatted_body"]) == ("**Two**", "<p><strong>Two</strong></p>")

        await play.channel.delete(to, receipt)
        await until(lambda: bool(play.ear.of(Withdrawn)))
        with pytest.raises(MessageGone):
            await play.channel.edit(to, receipt, Part(text="Three"))
        with pytest.raises(MessageGone):
            await play.channel.edit(to, "$nothing", Part(text="Three"))
        with pytest.raises(MessageGone):
            await play.channel.delete(to, "$nothing")


async def test_choices_are_pressed_by_reactions(play: Play, ann: Person):
    async with play.listening():
        room = await play.meeting(ann)
        to = Conversation(platform="matrix", chat=room)
        buttons = (Button(label="Yes", value="y"), Button(label="No", value="n"))
        receipt = await play.channel.send(to, Part(text="May I?", buttons=buttons, slot=7), "k1")
        await ann.react(room, receipt, "2\ufe0f\u20e3")
        await until(lambda: bool(play.ear.of(Pressed)))
        (pressed,) = play.ear.of(Pressed)
        assert (pressed.slot, pressed.choice, pressed.sender.user) == (7, 1, ann.id)

        fresh = CHANNEL.make(play.needs)
        await fresh.edit(to, receipt, Part(text="No."))
        await ann.look()
        own = [event for event in ann.seen if event["sender"] == play.own]
        assert len([event for event in own if event["type"] == "m.room.redaction"]) == 2


async def test_a_thread_a_reply_and_a_mention(play: Play, server: Synapse, ann: Person):
    async with play.listening(), person(server, f"bob{next(names)}") as bob:
        room = await play.meeting(ann, bob)
        root = await ann.say(room, "A plan", **{"m.mentions": {"user_ids": [play.own]}})
        relation = {"rel_type": "m.thread", "event_id": root}
        await bob.say(room, f"{play.name}: more", **{"m.relates_to": relation})
        await until(lambda: len(play.ear.of(Said)) == 2)
        one, two = play.ear.of(Said)
        assert (one.where.chat_kind, one.where.thread, one.addressed) == ("group", "", True)
        assert (two.where.thread, two.addressed, two.text) == (root, True, "more")

        await play.channel.send(two.where, Part(text="Indeed", answers=two.source_id), "k1")
        await play.channel.send(one.where, Part(text="Yes", answers=one.source_id), "k2")
        await bob.say(room, "> <x> Yes\n\nGood", **{"m.relates_to": {"m.in_reply_to": {"event_id": root}}})
        shown = {each["body"]: each["relation"] for each in await ann.of(room, play.own)}
        assert (shown["Indeed"]["rel_type"], shown["Indeed"]["event_id"]) == ("m.thread", root)
        assert shown["Yes"]["m.in_reply_to"] == {"event_id": root}
        await until(lambda: len(play.ear.of(Said)) == 3)
        assert (play.ear.of(Said)[2].text, play.ear.of(Said)[2].addressed) == ("Good", False)


async def test_files_both_ways(play: Play, ann: Person, tmp_path: Path):
    async with play.listening():
        room = await play.meeting(ann)
        picture = b"\x89PNG" * 5000
        uploaded, _ = await ann.client.upload(io.BytesIO(picture), "image/png", "sea.png", filesize=len(picture))
        info = {"mimetype": "image/png", "size": len(picture)}
        await ann.say(room, "sea.png", msgtype="m.image", url=uploaded.content_uri, info=info)
        await until(lambda: bool(play.ear.of(Said)))
        (said,) = play.ear.of(Said)
        assert (said.text, said.media[0].name, said.media[0].media_type) == ("", "sea.png", "image/png")
        assert await play.channel.fetch(said.media[0], 10**9) == picture

        (tmp_path / "a.txt").write_bytes(b"content")
        file = Attachment(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain")
        await play.channel.send(said.where, Part(text="See", file=file), "k1")
        (shown,) = await ann.of(room, play.own)
        assert (shown["msgtype"], shown["body"], shown["filename"]) == ("m.file", "See", "a.txt")
        assert (await ann.client.download(shown["url"])).body == b"content"


async def test_a_new_process_goes_on_where_the_last_one_was_also_after_many_messages(play: Play, ann: Person):
    async with play.listening():
        room = await play.meeting(ann)
        await ann.say(room, "before")
        await until(lambda: bool(play.ear.of(Said)))
        await until(lambda: bool(play.needs.kept.texts))
        await asyncio.sleep(0.5)
    for number in range(130):
        await ann.say(room, f"message {number}")

    play.channel, play.ear.heard = CHANNEL.make(play.needs), []
    async with play.listening():
        await until(lambda: len(play.ear.of(Said)) >= 130)

    assert [said.text for said in play.ear.of(Said)][-130:] == [f"message {number}" for number in range(130)]


async def test_an_edit_and_a_deletion_of_a_person_are_told(play: Play, ann: Person):
    async with play.listening():
        room = await play.meeting(ann)
        first = await ann.say(room, "One")
        relation = {"rel_type": "m.replace", "event_id": first}
        await ann.say(
            room, "* Two", **{"m.new_content": {"msgtype": "m.text", "body": "Two"}, "m.relates_to": relation}
        )
        await ann.client.room_redact(room, first)
        await until(lambda: bool(play.ear.of(Withdrawn)))

    one, two = play.ear.of(Said)
    assert (one.text, one.edited, two.text, bool(two.edited)) == ("One", "", "Two", True)
    assert one.source_id == two.source_id == play.ear.of(Withdrawn)[0].source_id == first


async def test_a_room_that_it_was_removed_from_is_no_other_try(play: Play, ann: Person):
    async with play.listening():
        room = await play.meeting(ann)
        to = Conversation(platform="matrix", chat=room)
        await play.channel.send(to, Part(text="Hello"), "k1")
        await ann.client.room_kick(room, play.own, "enough")
        await until(lambda: bool(play.ear.of(Removed)))

        with pytest.raises(NeverHere):
            await play.channel.send(to, Part(text="Hello"), "k2")
    assert play.ear.of(Removed)[0].reason.endswith('removed the agent from the room, saying "enough".')


async def test_a_third_person_makes_a_group_of_a_chat(play: Play, server: Synapse, ann: Person):
    async with play.listening(), person(server, f"bob{next(names)}") as bob:
        room = await play.meeting(ann)
        await ann.say(room, "alone")
        await until(lambda: len(play.ear.of(Said)) == 1)
        await ann.client.room_invite(room, bob.id)
        await bob.client.join(room)
        await ann.say(room, "with Bob")
        await until(lambda: len(play.ear.of(Said)) == 2)

    assert [said.where.chat_kind for said in play.ear.of(Said)] == ["dm", "group"]


async def test_a_long_code_block_with_what_has_to_be_escaped_goes_out(play: Play, ann: Person):
    async with play.listening():
        room = await play.meeting(ann)
        to = Conversation(platform="matrix", chat=room)
        text = "```\n" + '"<&>\n' * 3000 + "```"
        assert len(text.encode()) <= CHANNEL.abilities.longest_message
        receipt = await play.channel.send(to, Part(text=text), "k1")
        await play.channel.edit(to, receipt, Part(text=text[::-1]))

        (shown,) = await ann.of(room, play.own)
    assert shown["body"] == text[::-1]


async def test_a_revoked_token_is_a_sentence(play: Play, server: Synapse):
    bad = CHANNEL.make(replace(play.needs, secret=lambda _: "syt_wrong"))

    with pytest.raises(TokenRefused):
        await bad.listen(play.ear)
    with pytest.raises(ChannelError, match="token"):
        await bad.check()
