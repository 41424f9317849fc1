"""People on a real homeserver talk to the gateway: alone, in a group, in a thread, with a picture, over a restart, in
the clear and encrypted; strangers are let in by a code, and rooms replaced."""

import asyncio
import io
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hermes_agent.core.messages import Image, Role
from hermes_agent.gateway.channel import Channel, Needs
from hermes_agent.gateway.channels.matrix import CHANNEL
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import ModelServer
from tests.cli.shell import program
from tests.gateway.harness import eventually, opened
from tests.gateway.matrix.synapse import SERVER, AtOnce, Person, Synapse, is_installed, person

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nio"),
    pytest.mark.skipif(
        not is_installed(), reason="matrix-synapse is not installed (it has builds for Linux and macOS)"
    ),
]
CODE = "```python\n" + "\n".join(f"line_{number} = {number}  # of a long program" for number in range(900)) + "\n```"


REPLIES = {
    "What is it?": "A cat.",
    "Write code.": CODE,
    "We are two.": "Hello to both.",
    "Who is here?": "In the thread.",
    "Still there?": "Welcome back.",
}


def reply(heard: Heard) -> Say | Call | Hang:
    """The answer to what was said last."""
    last = str(heard.messages[-1])
    if "Look it up." in last:
        return Hang()
    if heard.last.role is Role.TOOL:
        return Say("It is clean.")
    if "Clean up." in last:
        return Call("terminal", {"command": "touch done; rm -rf build$NONE"})
    return next(Say(answer) for words, answer in REPLIES.items() if words in last)


@dataclass(slots=True, kw_only=True)
class Journey:
    """An agent at work, its owner Ann and its member Bob."""

    own: str
    ann: Person
    bob: Person
    model: ModelServer
    home: Path
    secret: bool

    async def answered(self, room: str, count: int, to: Person | None = None) -> list[dict]:
        """What the agent shows in a room, once it is so much and the last words are complete."""
        shown: list[dict] = []

        async def there() -> bool:
            shown[:] = await (to or self.ann).of(room, self.own)
            return len(shown) >= count

        await eventually(there, 60)
        return shown

    async def alone(self, who: Person) -> str:
        """A room of somebody's with the agent in it."""
        room = await who.room(self.own, encrypted=self.secret)
        await who.meets(room, self.own)
        await who.look()
        return room

    async def group(self) -> str:
        room = await self.ann.room(self.own, self.bob.id, encrypted=self.secret)
        await self.bob.client.join(room)
        await self.bob.meets(room, self.own)
        for each in (self.ann, self.bob):
            await each.look()
        return room

    async def picture(self, content: bytes) -> dict:
        """What Ann's message says of a picture that she uploaded."""
        uploaded, keys = await self.ann.client.upload(
            io.BytesIO(content), "image/png", encrypt=self.secret, filesize=len(content)
        )
        place = {"file": {**keys, "url": uploaded.content_uri}} if self.secret else {"url": uploaded.content_uri}
        info = {"mimetype": "image/png", "size": len(content)}
        return {"msgtype": "m.image", "info": info, "filename": "a.png", **place}

    @property
    def mention(self) -> dict:
        return {"m.mentions": {"user_ids": [self.own]}}


@asynccontextmanager
async def journey(server: Synapse, folder: Path, *, secret: bool = False) -> AsyncIterator[Journey]:
    mark = time.time_ns()
    token, _ = server.token(f"agent{mark}")
    options = {"homeserver": server.url, "encryption": "yes" if secret else "no"}

    def make(needs: Needs) -> Channel:
        channel = CHANNEL.make(replace(needs, options=options, secret=lambda _: token))
        if secret:
            channel._crypto._thread = AtOnce()
        return channel

    async with guest(server, folder, f"ann{mark}", secret) as ann, guest(server, folder, f"bob{mark}", secret) as bob:
        people = f"owners: ['{ann.id}']\nmembers: ['{bob.id}']\ngroups: ['*']"
        async with opened(folder, replace(CHANNEL, make=make), reply, people) as model:
            own = f"@agent{mark}:{SERVER}"
            yield Journey(own=own, ann=ann, bob=bob, model=model, home=folder / "home", secret=secret)


@asynccontextmanager
async def guest(server: Synapse, folder: Path, name: str, secret: bool) -> AsyncIterator[Person]:
    keys = folder / name
    keys.mkdir()
    async with person(server, name, keys if secret else None) as made:
        yield made


both = pytest.mark.parametrize("secret", [False, True], ids=["clear", "secret"])


@both
async def test_a_picture_is_looked_at_and_long_code_arrives_whole(server: Synapse, tmp_path: Path, secret: bool):
    async with journey(server, tmp_path, secret=secret) as at:
        room = await at.alone(at.ann)
        await at.ann.say(room, "What is it?", **await at.picture(b"\x89PNG" * 4000))
        assert [each["body"] for each in await at.answered(room, 1)] == ["A cat."]

        await at.ann.say(room, "Write code.")
        pieces = [each["body"] for each in (await at.answered(room, 4))[1:]]

    assert [isinstance(part, Image) for part in at.model.asked[0].messages[-1].parts].count(True) == 1
    assert "What is it?" in str(at.model.exchanges[0])
    assert "A cat." in str(at.model.exchanges[1])
    assert sum(piece.count("line_") for piece in pieces) == 900
    assert all(piece.startswith("```python\n") and piece.endswith("\n```") for piece in pieces)


@both
async def test_a_group_a_thread_and_a_restart_of_the_homeserver(server: Synapse, tmp_path: Path, secret: bool):
    async with journey(server, tmp_path, secret=secret) as at:
        room = await at.group()
        await at.ann.say(room, "Not for you.")
        await at.bob.say(room, "We are two.", **at.mention)
        assert [each["body"] for each in await at.answered(room, 1)] == ["Hello to both."]

        root = await at.ann.say(room, "A thread")
        relation = {"rel_type": "m.thread", "event_id": root}
        await at.ann.say(room, "Who is here?", **at.mention, **{"m.relates_to": relation})
        shown = (await at.answered(room, 2))[1]
        assert (shown["body"], shown["relation"]["event_id"]) == ("In the thread.", root)

        server.stop()
        server.start()
        await at.bob.look()
        await at.bob.say(room, "Still there?", **at.mention)
        assert (await at.answered(room, 3))[2]["body"] == "Welcome back."

    asked = [str(exchange) for exchange in at.model.exchanges]
    assert len(asked) == 3
    assert "Not for you" not in "".join(asked)
    assert "Hello to both" not in asked[1]
    assert "Hello to both" in asked[2]
    sent = [event for event in at.ann.seen if event["room"] == room and event["type"] == "m.room.message"]
    assert all(event["opened"] for event in sent)


@both
async def test_what_a_call_may_do_is_decided_by_a_reaction(server: Synapse, tmp_path: Path, secret: bool):
    async with journey(server, tmp_path, secret=secret) as at:
        room = await at.alone(at.ann)
        await at.ann.say(room, "Clean up.")
        (question,) = await at.answered(room, 1)
        assert "1\ufe0f\u20e3" in question["body"]
        await at.ann.react(room, question["id"], "1\ufe0f\u20e3")

        async def clean() -> bool:
            return any(each["body"] == "It is clean." for each in await at.ann.of(room, at.own))

        await eventually(clean, 60)
        assert (at.home / "workspace" / "done").exists()


@both
async def test_a_message_that_is_taken_back_is_not_answered(server: Synapse, tmp_path: Path, secret: bool):
    async with journey(server, tmp_path, secret=secret) as at:
        room = await at.alone(at.ann)
        first = await at.ann.say(room, "Look it up.")
        await eventually(lambda: len(at.model.exchanges) == 1, 60)
        await at.ann.client.room_redact(room, first)
        await at.ann.say(room, "Still there?")

        assert [each["body"] for each in await at.answered(room, 1)] == ["Welcome back."]
    assert "Look it up" not in str(at.model.exchanges[-1])


@both
async def test_a_stranger_is_let_in_by_a_code(server: Synapse, tmp_path: Path, secret: bool):
    mark = time.time_ns()
    async with (
        journey(server, tmp_path, secret=secret) as at,
        guest(server, tmp_path, f"eve{mark}", secret) as eve,
        guest(server, tmp_path, f"dan{mark}", secret) as dan,
    ):
        room = await at.alone(eve)
        await eve.say(room, "Still there?")
        (shown,) = await at.answered(room, 1, to=eve)
        (code,) = re.findall("approve ([A-Z0-9]{8})", shown["body"])
        approved = await asyncio.to_thread(program, "pairing", "approve", code, home=at.home)
        assert approved.code == 0
        await eve.say(room, "Still there?")
        assert (await at.answered(room, 2, to=eve))[1]["body"] == "Welcome back."

        other = await at.alone(dan)
        await dan.client.room_invite(other, eve.id)
        await eve.client.join(other)

        async def left() -> bool:
            return at.own not in {each.user_id for each in (await dan.client.joined_members(other)).members}

        await eventually(left, 60)
    assert len(at.model.exchanges) == 1


async def test_a_conversation_goes_on_in_the_room_that_replaces_its_own(server: Synapse, tmp_path: Path):
    async with journey(server, tmp_path) as at:
        room = await at.group()
        await at.bob.say(room, "We are two.", **at.mention)
        await at.answered(room, 1)

        new = await replaced(at.ann, room)
        await at.ann.client.room_invite(new, at.own)
        await at.ann.client.room_invite(new, at.bob.id)
        await at.bob.client.join(new)
        await at.bob.meets(new, at.own)
        await at.bob.say(new, "Still there?", **at.mention)
        assert (await at.answered(new, 1))[0]["body"] == "Welcome back."

    assert "Hello to both" in str(at.model.exchanges[1])


async def replaced(who: Person, room: str) -> str:
    """Replace a room as its creator does; the id of the other one."""
    path = f"/_matrix/client/v3/rooms/{room}/upgrade"
    headers = {"Authorization": f"Bearer {who.client.access_token}"}
    answer = await who.client.send("POST", path, data='{"new_version": "10"}', headers=headers)
    return str((await answer.json())["replacement_room"])
