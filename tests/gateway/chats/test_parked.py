"""What a run asks waits for its person over a restart, under the buttons that were there before; and a press means what
it meant, no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.settings import SERVED
from hermes_agent.core.chat import Conversation, Inbound, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Text
from hermes_agent.gateway.channel import Kind
from hermes_agent.gateway.channels.discord import CHANNEL as DISCORD
from hermes_agent.gateway.channels.slack import CHANNEL as SLACK
from hermes_agent.gateway.channels.telegram import CHANNEL as TELEGRAM
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.server import Gateway
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Heard, Say
from hermes_agent.store.sessions import Session
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.faults import KeepAlives
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from tests.app.place import settle_home
from tests.doubles.discord import discord_platform
from tests.doubles.slack import slack_platform
from tests.doubles.telegram import TOKEN, telegram
from tests.gateway.harness import eventually, harness

RISKY = Call("terminal", {"command": "touch done; rm -rf build$NONE"})


@dataclass(frozen=True)
class At:
    """A platform, the channel to it, and the chat of one person there."""

    platform: Any
    kind: Kind
    options: str
    chat: str
    secrets: tuple[str, ...] = ()

    def shown(self) -> list[str]:
        return [each.text for each in self.platform.chats.of(self.chat)]

    def buttons(self) -> dict[str, tuple[str, ...]]:
        return {each.id: each.buttons for each in self.platform.chats.of(self.chat) if each.buttons}


@asynccontextmanager
async def on_telegram() -> AsyncIterator[At]:
    async with telegram() as double:
        yield At(double, TELEGRAM, f"options: {{api_url: '{double.url}'}}", "1", (f"TELEGRAM_BOT_TOKEN={TOKEN}",))


@asynccontextmanager
async def on_discord() -> AsyncIterator[At]:
    async with discord_platform() as double:
        yield At(double, DISCORD, f"options: {{api: '{double.url}/api/v10'}}", "1", ("DISCORD_BOT_TOKEN=secret",))


@asynccontextmanager
async def on_slack() -> AsyncIterator[At]:
    async with slack_platform() as double:
        tokens = ("SLACK_BOT_TOKEN=secret", "SLACK_APP_TOKEN=secret")
        yield At(double, SLACK, f"options: {{api: '{double.url}/api'}}", "D1", tokens)


@asynccontextmanager
async def on_fake() -> AsyncIterator[At]:
    platform = FakePlatform()
    yield At(platform, platform.kind(), "", "1")


Platforms = Callable[[], AbstractAsyncContextManager[At]]
PLATFORMS: dict[str, Platforms] = {
    "telegram": on_telegram,
    "discord": on_discord,
    "slack": on_slack,
    "fake": on_fake,
}


def settled(path: Path, at: At, model: ModelServer) -> Home:
    home = Home(root=path, base=path)
    settle_home(home.root, model.url)
    with (home.root / ".env").open("a") as file:
        file.writelines(f"{line}\n" for line in at.secrets)
    lines = ("enabled: true", "owners: ['7']", "stream: false", at.options)
    with home.config_file.open("a") as file:
        file.write(f"gateway:\n  drain_seconds: 0\n  channels:\n    {at.kind.name}:\n")
        file.writelines(f"      {line}\n" for line in lines if line)
    return home


@asynccontextmanager
async def opened(home: Home, at: At) -> AsyncIterator[Gateway]:
    async with open_gateway(home, {at.kind.name: at.kind}) as gateway:
        yield gateway


@pytest.mark.parametrize("name", PLATFORMS)
async def test_an_approval_waits_over_a_restart_under_its_buttons(tmp_path: Path, name: str):
    async with PLATFORMS[name]() as at, serving(openai_model([RISKY, Say("Done.")], keys=())) as model:
        home = settled(tmp_path, at, model)
        async with opened(home, at) as gateway:
            await at.platform.say("Do it", chat=at.chat)
            await eventually(lambda: bool(at.buttons()))
            await gateway.delivery.idle()
        assert not (tmp_path / "workspace/done").exists()
        ((message, labels),) = at.buttons().items()

        async with opened(home, at):
            await at.platform.press(message, labels.index("Once"))
            await eventually(lambda: "Done." in at.shown())
            await eventually(lambda: not at.buttons())
    assert (tmp_path / "workspace/done").exists()
    assert len(model.exchanges) == 2
    assert any("→ once" in text for text in at.shown())


@pytest.mark.parametrize("name", PLATFORMS)
async def test_a_question_for_a_fact_is_answered_by_a_button_after_a_restart(tmp_path: Path, name: str):
    ask = Call("clarify", {"question": "Which one?", "choices": ["green", "blue"]})
    async with PLATFORMS[name]() as at, serving(openai_model([ask, Say("Done.")], keys=())) as model:
        home = settled(tmp_path, at, model)
        async with opened(home, at) as gateway:
            await at.platform.say("Paint it", chat=at.chat)
            await eventually(lambda: bool(at.buttons()))
            await gateway.delivery.idle()
        ((message, labels),) = at.buttons().items()

        async with opened(home, at):
            await at.platform.press(message, labels.index("blue"))
            await eventually(lambda: "Done." in at.shown())
            await eventually(lambda: not at.buttons())
    assert "blue" in str(model.asked[-1].messages)


@pytest.mark.parametrize("name", PLATFORMS)
async def test_a_button_of_a_run_that_was_stopped_begins_nothing(tmp_path: Path, name: str):
    async with PLATFORMS[name]() as at, serving(openai_model([RISKY, Say("Done.")], keys=())) as model:
        home = settled(tmp_path, at, model)
        async with opened(home, at) as gateway:
            await at.platform.say("Do it", chat=at.chat)
            await eventually(lambda: bool(at.buttons()))
            await at.platform.say(" /stop", chat=at.chat)
            await eventually(lambda: at.shown().count("Stopped.") == 2)
            await gateway.delivery.idle()
            assert not at.buttons()
            assert any("(Nobody answered.)" in text for text in at.shown())

            (record,) = await gateway.runtime.store.sessions.list()
            late = pressed(record, "Once")
            with pytest.raises(HermesError, match="Nothing waits for that any more"):
                await gateway.runtime.hermes.submit(late, record.id)
        assert not (tmp_path / "workspace/done").exists()
        assert len(model.exchanges) == 1


def pressed(record: Session, label: str) -> Inbound:
    """What a press would be that was on its way when the run was stopped."""
    return Inbound(
        source=record.surface,
        source_id="late",
        principal=Principal(platform=record.surface, user="7", standing=Standing.OWNER),
        conversation=Conversation.parse(record.conversation),
        parts=(Text(text=label.lower()),),
        received=1.0,
        answers="c1.approval",
    )


async def test_words_that_are_said_after_a_question_was_given_up_are_words(tmp_path: Path):
    def script(heard: Heard):
        if "Next" not in str(heard.messages):
            return Call("clarify", {"question": "Which one?"})
        done = "More" in str(heard.messages)
        return Say("Both.") if done else KeepAlives(reply=Answer(pieces=(Call("todo", {}),)), every=0.05, count=20)

    async with (
        on_fake() as at,
        serving(openai_model(script, keys=())) as model,
        opened(settled(tmp_path, at, model), at),
    ):
        await at.platform.say("Do it")
        await eventually(lambda: len(at.shown()) == 1)
        await at.platform.say("/stop")
        await eventually(lambda: at.shown().count("Stopped.") == 2)
        await at.platform.say("Next")
        await eventually(lambda: len(model.exchanges) == 2)
        await at.platform.say("More")
        await eventually(lambda: "Both." in at.shown())


async def deleted_on_discord(at: At, id_: str) -> None:
    await at.platform.gateway.tell("MESSAGE_DELETE", {"id": id_, "channel_id": at.chat})


async def deleted_on_slack(at: At, id_: str) -> None:
    stamp = id_.partition(":")[2]
    before = {"user": "7", "text": "Do it", "ts": stamp}
    event = {"type": "message", "subtype": "message_deleted", "channel": at.chat, "deleted_ts": stamp}
    await at.platform.tell("events_api", {"event": {**event, "previous_message": before}})


@pytest.mark.parametrize(("name", "deletes"), [("discord", deleted_on_discord), ("slack", deleted_on_slack)])
async def test_a_run_that_asks_is_given_up_when_what_was_said_is_deleted(tmp_path: Path, name: str, deletes):
    async with PLATFORMS[name]() as at, serving(openai_model([RISKY, Say("Done.")], keys=())) as model:
        home = settled(tmp_path, at, model)
        async with opened(home, at) as gateway:
            id_ = await at.platform.say("Do it", chat=at.chat)
            await eventually(lambda: bool(at.buttons()))
            await deletes(at, id_)
            await eventually(lambda: not at.buttons())
            await gateway.delivery.idle()

            assert not any(text in ("Done.", "Stopped.") for text in at.shown())
            assert any("(Nobody answered.)" in text for text in at.shown())
        assert not (tmp_path / "workspace/done").exists()
        assert len(model.exchanges) == 1


async def test_words_answer_what_a_run_in_another_process_asks(tmp_path: Path):
    script = [Call("clarify", {"question": "Which one?"}), Say("The blue one it is.")]
    async with harness(tmp_path, script) as here:
        here.gateway.runtime.hermes.scheduler._resting = True  # A worker is quicker.
        async with open_system(here.gateway.runtime.home, Options(queue=SERVED, own_only=False)):
            assert await here.ask("Paint it") == "Which one?"
            await here.platform.say("blue")

            await eventually(lambda: here.platform.chats.of("1")[-1].text == "The blue one it is.")
