"""People on a real homeserver talk to the gateway: alone, in a group, in a thread, with a picture, over a restart."""

import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hermes_agent.core.messages import Image
from hermes_agent.gateway.channel import Channel, Needs
from hermes_agent.gateway.channels.matrix import CHANNEL
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.testing.model_servers import ModelServer
from tests.gateway.house import eventually, opened
from tests.gateway.matrix.synapse import SERVER, Person, Synapse, is_installed, person

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
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


def reply(heard: Heard) -> Say:
    """The answer to what was said last."""
    last = str(heard.messages[-1])
    return next(Say(answer) for words, answer in REPLIES.items() if words in last)


@dataclass(slots=True, kw_only=True)
class Journey:
    """An agent at work, its owner Ann and its member Bob."""

    own: str
    ann: Person
    bob: Person
    model: ModelServer

    async def answered(self, room: str, count: int) -> list[dict]:
        """What the agent shows in a room, once it is so much and the last words are complete."""
        shown: list[dict] = []

        async def there() -> bool:
            shown[:] = await self.ann.of(room, self.own)
            return len(shown) >= count

        await eventually(there, 60)
        return shown

    async def group(self) -> str:
        room = await self.ann.room(self.own, self.bob.id)
        await self.bob.client.join(room)
        await self.bob.meets(room, self.own)
        return room

    @property
    def mention(self) -> dict:
        return {"m.mentions": {"user_ids": [self.own]}}


@asynccontextmanager
async def journey(server: Synapse, folder: Path) -> AsyncIterator[Journey]:
    mark = time.time_ns()
    token, _ = server.token(f"agent{mark}")

    def make(needs: Needs) -> Channel:
        return CHANNEL.make(replace(needs, options={"homeserver": server.url}, secret=lambda _: token))

    async with person(server, f"ann{mark}") as ann, person(server, f"bob{mark}") as bob:
        people = f"owners: ['{ann.id}']\nmembers: ['{bob.id}']\ngroups: ['*']"
        async with opened(folder, replace(CHANNEL, make=make), reply, people) as model:
            yield Journey(own=f"@agent{mark}:{SERVER}", ann=ann, bob=bob, model=model)


async def test_a_picture_is_looked_at_and_long_code_arrives_whole(server: Synapse, tmp_path: Path):
    async with journey(server, tmp_path) as at:
        room = await at.ann.room(at.own)
        picture = b"\x89PNG" * 4000
        uploaded, _ = await at.ann.client.upload(io.BytesIO(picture), "image/png", filesize=len(picture))
        info = {"mimetype": "image/png", "size": len(picture)}
        given = {"msgtype": "m.image", "url": uploaded.content_uri, "info": info, "filename": "a.png"}
        await at.ann.say(room, "What is it?", **given)
        assert [each["body"] for each in await at.answered(room, 1)] == ["A cat."]

        await at.ann.say(room, "Write code.")
        pieces = [each["body"] for each in (await at.answered(room, 4))[1:]]

    assert [isinstance(part, Image) for part in at.model.asked[0].messages[-1].parts].count(True) == 1
    assert "What is it?" in str(at.model.exchanges[0])
    assert "A cat." in str(at.model.exchanges[1])
    assert sum(piece.count("line_") for piece in pieces) == 900
    assert all(piece.startswith("```python\n") and piece.endswith("\n```") for piece in pieces)


async def test_a_group_a_thread_and_a_restart_of_the_homeserver(server: Synapse, tmp_path: Path):
    async with journey(server, tmp_path) as at:
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
        await at.bob.say(room, "Still there?", **at.mention)
        assert (await at.answered(room, 3))[2]["body"] == "Welcome back."

    asked = [str(exchange) for exchange in at.model.exchanges]
    assert len(asked) == 3
    assert "Not for you" not in "".join(asked)
    assert "Hello to both" not in asked[1]
    assert "Hello to both" in asked[2]
