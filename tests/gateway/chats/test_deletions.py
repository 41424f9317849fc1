"""Messages that are deleted or changed where they were written, before, while and after they are answered."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.core.chat import TAKEN_BACK
from hermes_agent.core.events import MessageTaken, Notice, Undone
from hermes_agent.gateway.channel import Withdrawn
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Mail
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.faults import Hang, KeepAlives
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import settle_home
from tests.gateway.harness import Harness, eventually, harness

OWNER = "owners: ['7']\n"
QUEUE = f"{OWNER}busy: queue\n"
SLOW = Answer(pieces=(Say("Word upon word upon word. " * 40),), pace=Pace(between=0.1))
"""Takes four seconds."""


def after(count: int, answer: Answer | Say) -> KeepAlives:
    """An answer that begins after so many twentieths of a second."""
    reply = answer if isinstance(answer, Answer) else Answer(pieces=(answer,))
    return KeepAlives(reply=reply, every=0.05, count=count)


async def log_of(here: Harness) -> list:
    (record,) = await here.store.sessions.list()
    return [entry.event for entry in await here.store.history.entries(record.id)]


async def delete(here: Harness, source: str, by: str = "", *, moderates: bool = False) -> None:
    before = here.platform.received()
    await here.platform.tell(Withdrawn(source_id=source, where=here.platform.where("1"), by=by, moderates=moderates))
    await eventually(lambda: here.platform.received() > before)


async def asked(here: Harness, count: int = 1) -> None:
    await eventually(lambda: len(here.model.exchanges) == count)


async def fate(store: Store, source: str) -> Mail:
    """Where the mail that a message became stands; right after the start it comes by way of the commands."""
    found = await store.inbox.find("fake", f"{source}:said") or await store.inbox.find("fake", source)
    assert found is not None
    return found


def sent(here: Harness) -> str:
    """What the model was sent last."""
    return str([message.text for message in here.model.asked[-1].messages])


async def test_a_run_whose_message_is_deleted_ends_without_a_word(tmp_path: Path):
    async with harness(tmp_path, lambda heard: Hang() if "Look" in str(heard.messages) else Say("Hello.")) as here:
        source = await here.platform.say("Look it up")
        await asked(here)
        await delete(here, source)
        await here.rest()

        assert here.platform.chats.of("1") == []
        mail = await fate(here.store, source)
        assert (mail.state, mail.reason) == ("refused", TAKEN_BACK)
        assert await here.ask("Hi") == "Hello."
        assert "Look it up" not in sent(here)
        log = await log_of(here)
        assert any(isinstance(each, Undone) for each in log)
        assert any(isinstance(each, MessageTaken) and each.message.text == "Look it up" for each in log)


async def test_the_half_of_a_reply_that_was_shown_goes_away(tmp_path: Path):
    async with harness(tmp_path, lambda heard: SLOW if "Tell" in str(heard.messages) else Say("Hello.")) as here:
        source = await here.platform.say("Tell me a story")
        assert "Word upon" in (await here.shown())[0].text
        await delete(here, source)
        await here.rest()

        assert here.platform.chats.of("1") == []
        assert await here.ask("Hi") == "Hello."
        assert "Word upon" not in sent(here)


async def test_what_was_done_for_a_deleted_message_stays_known(tmp_path: Path):
    def script(heard: Heard):
        if "Next" in str(heard.messages[-1]):
            return Say("Hello.")
        done = any("tool" in str(message.role) for message in heard.messages)
        return Hang() if done else Call("write_file", {"path": "a.txt", "content": "a"})

    async with harness(tmp_path, script) as here:
        source = await here.platform.say("Write it")
        await asked(here, 2)
        await delete(here, source)
        await here.rest()

        assert here.platform.chats.of("1") == []
        assert await here.ask("Next") == "Hello."
        assert "Do not answer it" in sent(here)


async def test_a_message_that_waits_is_not_answered_when_it_is_deleted(tmp_path: Path):
    async with harness(tmp_path, lambda _: Hang(), QUEUE) as here:
        await here.platform.say("First")
        await asked(here)
        source = await here.platform.say("Second")
        await eventually(lambda: here.platform.received() == 2)
        await delete(here, source, by="7")
        assert await here.ask("/stop") == "Stopped."

        async def gone() -> bool:
            return (await fate(here.store, source)).reason == TAKEN_BACK

        await eventually(gone)
        await here.rest()
        assert {shown.text for shown in here.platform.chats.of("1")} == {"Stopped."}
        assert len(here.model.exchanges) == 1
        mail = await fate(here.store, source)
        assert (mail.state, mail.reason) == ("refused", TAKEN_BACK)
        told = [each.text for each in await log_of(here) if isinstance(each, Notice)]
        assert told == ["Deleted by 7 before it was read, and not answered: Second"]


async def test_of_several_messages_the_model_is_told_which_one_was_deleted(tmp_path: Path):
    def script(heard: Heard):
        turn = sum("tool" in str(message.role) for message in heard.messages)
        return after(20, Answer(pieces=(Call("read_file", {"path": f"{turn}.txt"}),))) if turn < 2 else Say("Both.")

    async with harness(tmp_path, script) as here:
        first = await here.platform.say("First")
        await asked(here)
        second = await here.platform.say("Second")
        await asked(here, 2)
        await delete(here, first)
        await asked(here, 3)
        await here.shown()

        assert here.model.asked[-1].messages[-1].text.endswith("is not to be answered any more:)\n\nFirst")
        assert here.platform.chats.of("1")[-1].text == "Both."
        assert (await fate(here.store, second)).state == "answered"


async def test_when_the_last_of_several_is_deleted_the_run_ends(tmp_path: Path):
    def script(heard: Heard):
        both = "Second" in str(heard.messages)
        return Hang() if both else after(40, Answer(pieces=(Call("read_file", {"path": "a.txt"}),)))

    async with harness(tmp_path, script) as here:
        first = await here.platform.say("First")
        await asked(here)
        second = await here.platform.say("Second")
        await asked(here, 2)
        await delete(here, first)
        await delete(here, second)

        async def gone() -> bool:
            found = [await fate(here.store, each) for each in (first, second)]
            return {each.reason for each in found} == {TAKEN_BACK}

        await eventually(gone)
        await here.rest()
        assert here.platform.chats.of("1") == []


async def test_a_deletion_that_is_told_first_and_twice_holds(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Hello.")) as here:
        await delete(here, "1:x")
        await delete(here, "1:x")
        await here.platform.say("Never mind", source_id="1:x")
        await here.platform.say("Really", source_id="1:x", edited=True)
        await here.rest()

        assert not here.model.exchanges
        assert await here.ask("Hi") == "Hello."


async def test_a_reply_that_was_sent_stays(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Hello.")) as here:
        source = await here.platform.say("Hi")
        await here.shown()
        await here.rest()
        await delete(here, source)
        await here.rest()

        assert [shown.text for shown in here.platform.chats.of("1")] == ["Hello."]
        assert (await fate(here.store, source)).state == "answered"
        assert len(here.model.exchanges) == 1


async def test_only_who_wrote_it_or_moderates_there_takes_a_message_back(tmp_path: Path):
    async with harness(tmp_path, lambda _: after(20, Say("Hello."))) as here:
        source = await here.platform.say("Hi")
        await asked(here)
        await delete(here, source, by="9")
        assert [shown.text for shown in await here.shown()] == ["Hello."]

        source = await here.platform.say("Hi again")
        await asked(here, 2)
        await delete(here, source, by="9", moderates=True)
        await here.rest()
        assert [shown.text for shown in here.platform.chats.of("1")] == ["Hello."]


async def test_deletions_where_it_does_not_answer_leave_nothing(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Hello."), f"{OWNER}groups: ['5']\n") as here:
        await here.platform.tell(Withdrawn(source_id="6:1", where=here.platform.where("6", group=True)))
        await here.platform.tell(Withdrawn(source_id="5:1", where=here.platform.where("5", group=True)))
        await eventually(lambda: here.platform.received() == 2)

        assert await here.store.inbox.find("fake", "6:1") is None
        assert (await here.store.inbox.find("fake", "5:1")).reason == TAKEN_BACK


async def deaf() -> None:
    """Hears no ring."""


async def test_a_deletion_outlives_the_process_that_heard_it(tmp_path: Path):
    """The run was under way when its process went; the next one hears of the deletion before it takes the run up."""
    platform = FakePlatform()
    async with serving(openai_model(lambda _: Hang(), keys=())) as model:
        home = Home(root=tmp_path, base=tmp_path)
        settle_home(home.root, model.url)
        with home.config_file.open("a") as file:
            file.write("gateway:\n  drain_seconds: 0\n  channels:\n    fake: {enabled: true, owners: ['7']}\n")
        async with open_gateway(home, {"fake": platform.kind()}) as first:
            source = await platform.say("Are you there?")
            await eventually(lambda: len(model.exchanges) == 1)
            (record,) = await first.runtime.store.sessions.list()
            scheduler = first.runtime.hermes.scheduler
            scheduler.enqueue, scheduler._on_ring = (lambda *_: None), deaf  # It dies between the commit and the stop.
            await platform.tell(Withdrawn(source_id=source, where=platform.where("1")))
            await eventually(lambda: platform.received() == 2)

        async with open_gateway(home, {"fake": platform.kind()}) as second:
            await eventually(lambda: not second.runtime.hermes.runs(record.id))
            store = second.runtime.store

            async def over() -> bool:
                return (await fate(store, source)).state == "refused"

            await eventually(over)
            await second.delivery.idle()
            assert len(model.exchanges) == 1
    assert platform.chats.of("1") == []


async def test_an_order_that_waits_is_not_done_when_it_is_deleted(tmp_path: Path):
    async with harness(tmp_path, lambda _: Hang()) as here:
        await here.platform.say("First")
        await asked(here)
        source = await here.platform.say("/queue Second")
        await eventually(lambda: here.platform.received() == 2)
        await here.gateway.command_queue.drain()
        await delete(here, source)
        assert await here.ask("/stop") == "Stopped."

        async def gone() -> bool:
            return (await fate(here.store, source)).reason == TAKEN_BACK

        await eventually(gone)
        assert len(here.model.exchanges) == 1


async def test_a_message_that_is_changed_while_it_waits_is_read_as_it_says_now(tmp_path: Path):
    async with harness(tmp_path, lambda heard: Say("One.") if "How" in str(heard.messages) else Hang(), QUEUE) as here:
        await here.platform.say("First")
        await asked(here)
        source = await here.platform.say("How much, in grams?")
        await here.platform.say("How much, in gallons?", source_id=source, edited=True)
        await here.platform.say("How much, in ounces?", source_id=source, edited=True)
        await eventually(lambda: here.platform.received() == 4)
        await here.ask("/stop")
        await here.shown(3)
        await here.rest()

        assert "How much, in ounces?" in sent(here)
        assert not any(word in sent(here) for word in ("grams", "gallons", "It now says"))
        assert len(here.model.exchanges) == 2


async def test_a_changed_message_that_is_deleted_is_not_answered_in_any_of_its_texts(tmp_path: Path):
    async with harness(tmp_path, lambda _: Hang(), QUEUE) as here:
        await here.platform.say("First")
        await asked(here)
        source = await here.platform.say("How much, in grams?")
        await here.platform.say("How much, in ounces?", source_id=source, edited=True)
        await delete(here, source)
        await here.ask("/stop")
        await here.rest()

        assert len(here.model.exchanges) == 1


async def test_a_message_that_was_changed_after_new_is_taken_back_where_its_new_text_went(tmp_path: Path):
    async with harness(tmp_path, lambda heard: Hang() if "ounces" in str(heard.messages) else Say("Two.")) as here:
        assert await here.ask("How much?", source_id="1:m") == "Two."
        await here.ask("/new")
        await here.platform.say("How much, in ounces?", source_id="1:m", edited=True)
        await asked(here, 2)
        shown = len(here.platform.chats.of("1"))

        await delete(here, "1:m", by="7")
        await here.rest()

        assert len(here.platform.chats.of("1")) == shown
        assert not await here.store.sessions.list(busy=True)
