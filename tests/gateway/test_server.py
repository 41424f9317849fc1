"""The gateway as people meet it: what they say is answered once, and one broken channel harms no other."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hermes_agent.core.errors import ConfigError
from hermes_agent.core.messages import Role
from hermes_agent.gateway.channel import Abilities, Channel, Needs, NotNow, TokenRefused
from hermes_agent.gateway.channel_runtime import ChannelRuntime
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.server import TAKEN_PAUSE
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.store.database import open_store
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.faults import Hang, KeepAlives
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.testing.platform import Trouble
from tests.app.place import settle_home
from tests.gateway.harness import eventually, harness


async def test_what_a_person_says_is_answered(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello, Ann.")]) as here:
        assert await here.ask("Hi") == "Hello, Ann."


async def test_a_message_that_is_told_twice_is_answered_once(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello."), Say("Again?")]) as here:
        await here.ask("Hi")
        await here.platform.again()
        await here.rest()

        assert [shown.text for shown in here.platform.chats.of("1")] == ["Hello."]


async def test_the_order_of_a_chat_is_kept(tmp_path: Path):
    async with harness(tmp_path, [Say("One."), Say("Two."), Say("Three.")], "owners: ['7']\nbusy: queue\n") as here:
        for number in range(3):
            await here.ask(f"message {number}")

        assert [shown.text for shown in here.platform.chats.of("1")] == ["One.", "Two.", "Three."]


async def test_messages_that_are_to_be_alone_get_a_reply_each(tmp_path: Path):
    def slow(heard: Heard) -> Answer:
        words = next(message.text for message in reversed(heard.messages) if message.role is Role.USER)
        return Answer(pieces=(Say(f"About {words}."),), pace=Pace(first=0.05))

    async with harness(tmp_path, slow, "owners: ['7']\nbusy: alone\n") as here:
        for number in range(3):
            await here.platform.say(f"message {number}")
        shown = await here.shown(3)

    assert [each.text for each in shown] == [f"About message {number}." for number in range(3)]


@pytest.mark.parametrize("trouble", [Trouble.BUSY, Trouble.BROKEN])
async def test_a_platform_that_refuses_is_asked_again(tmp_path: Path, trouble: Trouble):
    async with harness(tmp_path, [Say("Hello.")]) as here:
        here.platform.chats.order(trouble, "send")

        assert await here.ask("Hi") == "Hello."
        assert (await here.store.outbox.tally()).states == {"sent": 1}


async def test_what_may_have_been_sent_is_sent_again_with_a_mark_and_counted(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")]) as here:
        here.platform.chats.order(Trouble.DEAF, "send")

        await here.platform.say("Hi")
        first, second = await here.shown(2)

        assert first.text == "Hello."
        assert second.text.startswith("(This may be a repeat")
        assert second.text.endswith("Hello.")
        assert (await here.store.outbox.tally()).repeated == 1


@pytest.mark.parametrize("ability", ["keyed", "read_back"])
async def test_where_it_can_be_known_nothing_is_sent_twice(tmp_path: Path, ability: str):
    platform = FakePlatform(Abilities(longest_message=300, edit=True, **{ability: 60.0}))
    async with harness(tmp_path, [Say("Hello.")], platform=platform) as here:
        platform.chats.order(Trouble.DEAF, "send")

        await here.platform.say("Hi")
        await here.shown()
        await eventually(lambda: here.gateway.delivery.delivered == 1)

        assert [shown.text for shown in platform.chats.of("1")] == ["Hello."]
        assert (await here.store.outbox.tally()).repeated == 0


async def test_a_chat_that_is_gone_is_told_in_the_outbox(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")]) as here:
        here.platform.chats.order(Trouble.GONE, "send")

        await here.platform.say("Hi")

        async def failed() -> bool:
            return [slot.error for slot in await here.store.outbox.failed()] == ["The chat is gone."]

        await eventually(failed)


async def test_a_connection_that_breaks_is_made_again(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello."), Say("Again.")]) as here:
        here.platform.chats.order(Trouble.CUT, "listen")

        assert await here.ask("Hi") == "Hello."
        assert await here.ask("Are you there?") == "Again."

        assert here.platform.chats.calls["listen"] > 3


async def test_a_channel_whose_token_is_wrong_stops_and_says_so(tmp_path: Path):
    platform = FakePlatform()

    async def refused(_: object) -> None:
        raise TokenRefused("The token is wrong.")

    kind = platform.kind()
    channel = kind.make(None)
    channel.listen = refused
    platform.made = lambda _: channel
    async with harness(tmp_path, [], platform=platform) as here:
        line = here.gateway.known["fake"]
        await eventually(lambda: line.state == "stopped")

        assert line.ailment == "The token is wrong."


async def test_a_channel_that_cannot_be_reached_is_never_said_to_listen(tmp_path: Path):
    platform = FakePlatform()
    platform.ailment = "The platform cannot be reached."
    async with harness(tmp_path, [Say("Hello.")], platform=platform) as here:
        line = here.gateway.known["fake"]
        await eventually(lambda: bool(line.ailment))
        assert (line.state, line.ailment) == ("starting", "The platform cannot be reached.")

        assert await here.ask("Hi") == "Hello."

        assert (line.state, line.ailment) == ("listening", "")


async def test_a_channel_that_breaks_again_and_again_harms_no_other(tmp_path: Path):
    broken, sound = FakePlatform(name="broken"), FakePlatform()
    channel = broken.made(None)

    async def breaks(_: object) -> None:
        raise ValueError("What is this?")

    channel.listen = breaks
    broken.made = lambda _: channel
    async with serving(openai_model([Say("Hello.")], keys=())) as model:
        home = Home(root=tmp_path, base=tmp_path)
        settle_home(home.root, model.url)
        with home.config_file.open("a") as file:
            file.write("gateway:\n  channels:\n    broken: {enabled: true}\n    fake: {enabled: true, owners: ['7']}\n")
        async with open_gateway(home, {"broken": broken.kind(), "fake": sound.kind()}) as gateway:
            await eventually(lambda: gateway.known["broken"].state == "waiting")
            await sound.say("Hi")
            await eventually(lambda: [shown.text for shown in sound.chats.of("1")] == ["Hello."])

            assert gateway.known["broken"].ailment == "ValueError: What is this?"
            assert gateway.known["fake"].state == "listening"


async def test_two_gateways_do_not_listen_with_one_token(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")]) as here:
        await eventually(lambda: here.gateway.known["fake"].state == "listening")
        other = await open_store(str(here.gateway.runtime.home.database))
        name = next(iter(here.gateway.runtime.hermes.scheduler.locks.names))

        assert await other.lanes.hold(name, "kept") is None
        await other.close()


async def test_a_draft_is_shown_and_becomes_the_reply(tmp_path: Path):
    async with harness(tmp_path, [[Say("Let me see."), Call("todo", {"items": []})], Hang()]) as here:
        await here.platform.say("Look")
        (shown,) = await here.shown()
        assert shown.text.startswith("Let me see.")

        await here.platform.say("/stop")

        await here.shown(2)
        await here.rest()
        assert [shown.text for shown in here.platform.chats.of("1")] == ["Stopped.", "Stopped."]


async def test_a_reply_that_is_too_long_for_one_message_comes_in_several(tmp_path: Path):
    text = "\n\n".join(f"Paragraph {number} of a long reply." for number in range(12))
    async with harness(tmp_path, [Say(text)]) as here:
        await here.platform.say("Tell me")
        shown = await here.shown(3)

        assert "\n\n".join(each.text for each in shown) == text
        assert all(len(each.text) <= 200 for each in shown)


async def test_what_runs_at_the_end_finishes_and_is_delivered_before_it(tmp_path: Path):
    platform = FakePlatform()
    slow = KeepAlives(reply=Answer(pieces=(Say("Done at last."),)), every=0.05, count=10)
    async with harness(tmp_path, [slow], platform=platform) as here:
        await platform.say("Take your time")
        await eventually(lambda: bool(here.model.exchanges))

    assert [shown.text for shown in platform.chats.of("1")] == ["Done at last."]


async def test_an_end_that_is_hurried_waits_for_no_run(tmp_path: Path):
    platform = FakePlatform()
    async with harness(tmp_path, [Hang()], platform=platform) as here:
        await platform.say("Take your time")
        await eventually(lambda: bool(here.model.exchanges))
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(here.gateway.stop())
            await eventually(lambda: here.gateway._draining is not None)
            here.gateway.hurry()

    assert not platform.chats.messages


async def test_an_end_that_is_hurried_before_it_came_to_the_runs_waits_for_none(tmp_path: Path):
    platform = FakePlatform()
    async with harness(tmp_path, [Hang()], platform=platform) as here:
        await platform.say("Take your time")
        await eventually(lambda: bool(here.model.exchanges))
        here.gateway.hurry()
        async with asyncio.timeout(10):
            await here.gateway.stop()

    assert not platform.chats.messages


async def test_what_could_not_finish_goes_on_with_the_next_gateway(tmp_path: Path):
    platform, replies = FakePlatform(), iter([Hang(), Say("Here I am.")])
    async with serving(openai_model(lambda _: next(replies), keys=())) as model:
        home = Home(root=tmp_path, base=tmp_path)
        settle_home(home.root, model.url)
        with home.config_file.open("a") as file:
            file.write(
                "gateway:\n  drain_seconds: 0\n  channels:\n    fake:\n      enabled: true\n      owners: ['7']\n"
            )
        async with open_gateway(home, {"fake": platform.kind()}):
            await platform.say("Are you there?")
            await eventually(lambda: len(model.exchanges) == 1)

        async with open_gateway(home, {"fake": platform.kind()}):
            await eventually(lambda: bool(platform.chats.of("1")))

    assert [shown.text for shown in platform.chats.of("1")] == ["Here I am."]


async def test_a_run_during_which_the_program_died_again_and_again_waits_with_a_word(tmp_path: Path):
    platform = FakePlatform()
    async with serving(openai_model([Say("Never asked.")], keys=())) as model:
        home = Home(root=tmp_path, base=tmp_path)
        settle_home(home.root, model.url)
        with home.config_file.open("a") as file:
            file.write("gateway:\n  channels:\n    fake:\n      enabled: true\n      owners: ['7']\n")
        for death in range(3):
            await asyncio.to_thread(dies_at_work, home, death)
        async with open_gateway(home, {"fake": platform.kind()}) as gateway:
            store = gateway.runtime.store

            async def buried() -> bool:
                return await store.read(lambda tx: tx.row("SELECT crashes FROM lane")) == (3,)

            await eventually(buried)
            await store.write(lambda tx: tx.run(PAUSE_IS_OVER))
            gateway.runtime.hermes.scheduler.wake()
            await eventually(lambda: bool(platform.chats.of("1")))

        assert not model.exchanges
    said = " ".join(shown.text for shown in platform.chats.of("1"))
    assert "The program crashed 3 times during this run, so Hermes stopped retrying." in said


def dies_at_work(home: Home, death: int) -> None:
    """A process that takes a message in (the first one does), holds its session and dies."""
    subprocess.run(
        [sys.executable, "-c", DIES, str(home.root), str(death)], env={"PYTHONPATH": ":".join(sys.path)}, check=True
    )


PAUSE_IS_OVER = "UPDATE lane SET ready_at = 0"
DIES = """
import asyncio, os, sys
from pathlib import Path
from hermes_agent.app.system import Options, open_system
from hermes_agent.core.chat import Conversation, Inbound, Principal
from hermes_agent.core.messages import Text
from hermes_agent.host.paths import Home

async def main(root, first):
    async with open_system(Home(root=root, base=root), Options(queue="gateway")) as runtime:
        who, where = Principal(platform="fake", user="7"), Conversation(platform="fake", chat="1")
        record = await runtime.hermes.open_session(where, who, workspace=str(root))
        parts = (Text(text="Hi"),)
        said = Inbound(source="fake", source_id="1", principal=who, conversation=where, parts=parts, received=1.0)
        if first:
            await runtime.store.inbox.accept(said, record.id, "gateway")
        await runtime.store.workers.reap()
        await runtime.store.write(lambda tx: tx.run("UPDATE lane SET ready_at = 0"))
        assert await runtime.store.lanes.claim(["gateway"], record.id)
        os._exit(0)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2] == "0"))
"""


async def test_the_log_says_that_it_began_before_anything_was_heard(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        assert "the gateway begins, with fake" in here.gateway.runtime.home.log_file.read_text()


class Noting(FakePlatform):
    """A platform whose channel has something to show to its owner."""

    def made(self, needs: Needs) -> Channel:
        self.note = needs.note
        return super().made(needs)


async def test_what_a_channel_notes_stands_beside_its_state(tmp_path: Path):
    platform = Noting()
    async with harness(tmp_path, [], platform=platform) as here:
        platform.note("device D")
        platform.note("device D")

        assert here.gateway.known["fake"].note == "device D"


async def test_a_folder_that_cannot_be_made_is_said_and_changes_nothing_by_half(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        settings, before = here.gateway.runtime.settings, here.gateway.settings
        (tmp_path / "file").write_text("")
        wanted = replace(settings.gateway, workspace=str(tmp_path / "file" / "folder"), max_runs=1)

        with pytest.raises(ConfigError, match=r"gateway\.workspace"):
            await here.gateway.follow(replace(settings, gateway=wanted))

        assert here.gateway.settings is before


async def test_who_waited_long_for_the_token_tries_again_at_once_when_it_breaks(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        await eventually(lambda: here.gateway.known["fake"].state == "listening")
        line, clock, broke = here.gateway.known["fake"], FakeClock(auto=True), list[float]()

        async def listen(_: ChannelRuntime) -> float | None:
            if clock.monotonic() < 60:
                return TAKEN_PAUSE
            broke.append(clock.monotonic())
            if len(broke) < 2:
                raise NotNow("The connection broke.")
            raise TokenRefused("That is enough.")

        here.gateway._listen = listen
        here.gateway.runtime = SimpleNamespace(clock=clock)
        await here.gateway._serve(line)
        here.gateway.runtime = here.gateway.drafts.runtime

        assert broke[1] - broke[0] == 1.0
