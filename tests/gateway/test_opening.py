"""The channels that are switched on, by the settings."""

from pathlib import Path

import pytest

from hermes_agent.app.chats.settings import ChannelSettings, GatewaySettings
from hermes_agent.core.chat import Content, Conversation, Letter, SlotState
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.opening import kinds_of, open_gateway
from hermes_agent.host.paths import Home
from hermes_agent.store.database import open_store
from hermes_agent.testing.clock import FakeClock
from tests.gateway.harness import eventually


def test_a_channel_that_there_is_not_is_an_error():
    with pytest.raises(ConfigError, match="There is no channel `telegrm`"):
        kinds_of(GatewaySettings(channels={"telegrm": ChannelSettings(enabled=True)}))


def test_a_channel_that_is_off_is_not_loaded():
    assert kinds_of(GatewaySettings(channels={})) == {}


async def test_what_was_delivered_long_ago_is_forgotten_and_conversations_are_reviewed_here(tmp_path: Path):
    home = Home(root=tmp_path, base=tmp_path).ensure()
    store = await open_store(tmp_path / "hermes.db", clock=FakeClock(now=1000.0))
    to = Conversation(platform="fake", chat_kind="direct", chat="1")
    for key in ("old", "waiting"):
        letter = Letter(key=key, to=to, content=Content(text="Hi"))
        await store.write(lambda tx, letter=letter: store.outbox.put(tx, letter))
    (slot,) = await store.outbox.claim(("fake",))
    await store.outbox.complete(slot, SlotState.SENT, ())
    await store.close()

    async with open_gateway(home, {}) as gateway:

        async def forgotten() -> bool:
            return await gateway.runtime.store.outbox.find("old") is None

        await eventually(forgotten)
        assert await gateway.runtime.store.outbox.find("waiting") is not None
        assert gateway.runtime.learner.works
