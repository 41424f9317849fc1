"""Questions under a reply in a chat: the owner answers by a button or a word, in private; nobody else is asked."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.gateway.channel import Said, Sender
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.channel import ABILITIES, FakePlatform
from tests.gateway.harness import Harness, harness
from tests.learning.harness import skill

PEOPLE = "owners: ['7']\nmembers: ['8']\nguests: ['9']\ngroups: ['5']\n"
LESSON = "Publish each build with twine upload."
SAVE = Call("memory", {"target": "memory", "action": "add", "content": LESSON})
SKILL = skill("publishing", LESSON)
QUESTION = f'Learned: note "{LESSON}" (p1)'


async def asked(here: Harness, text: str = "Build it", count: int = 2) -> str:
    """The newest message after the reply, the question under it."""
    await here.platform.say(text)
    return (await here.shown(count))[-1].text


def live(folder: Path) -> str:
    notes = folder / "home/memories/MEMORY.md"
    return notes.read_text() if notes.exists() else ""


async def test_a_button_keeps_what_was_learned(tmp_path: Path):
    async with harness(tmp_path, [SAVE, Say("Built.")], PEOPLE) as here:
        assert (await asked(here)).startswith(QUESTION)
        question = here.platform.chats.of("1")[-1]
        assert question.buttons == ("Keep", "Not now", "Never")
        assert question.text.endswith("keep / not now / never?")

        await here.platform.press(question.id, 0)
        told = await here.shown(3)
        await here.platform.press(question.id, 2)
        await here.rest()

        assert told[-1].text.startswith("p1 is live")
        assert "→ keep" in here.platform.chats.messages[question.id].text
        assert not here.platform.chats.messages[question.id].buttons
        assert LESSON in live(tmp_path)
        assert len(here.platform.chats.of("1")) == 3


@pytest.mark.parametrize(("word", "state"), [("never", "rejected"), ("Not now", "waiting"), ("n", "waiting")])
async def test_a_word_is_an_answer_once_and_not_a_message(tmp_path: Path, word: str, state: str):
    async with harness(tmp_path, [SAVE, Say("Built.")], PEOPLE) as here:
        await asked(here)
        before = len(here.model.exchanges)
        await here.platform.say(word)
        await here.platform.again()
        shown = await here.shown(3)
        await here.rest()
        proposal = await here.store.proposals.get(1)

        assert proposal is not None
        assert proposal.state.value == state
        assert len(here.model.exchanges) == before
        assert len(here.platform.chats.of("1")) == len(shown)


async def test_a_sentence_and_a_forwarded_word_are_messages(tmp_path: Path):
    async with harness(tmp_path, [SAVE, Say("Built."), Say("Fine."), Say("Fine.")], PEOPLE) as here:
        await asked(here)
        where, sender = here.platform.where("1"), Sender(user="7", name="Ann")
        word = Said(source_id="1:f", where=where, sender=sender, text="keep", at=1.0, forwarded=True)
        await here.platform.tell(word)
        assert (await here.shown(3))[-1].text == "Fine."
        assert await here.ask("keep") == "Fine."
        waiting = await here.store.proposals.waiting()

    assert [each.name for each in waiting] == ["p1"]
    assert live(tmp_path) == ""


@pytest.mark.parametrize(
    ("user", "chat", "proposed"),
    [("8", {"chat": "1"}, 1), ("9", {"chat": "1"}, 0), ("7", {"chat": "5", "group": True}, 1)],
)
async def test_nobody_else_is_asked_nor_the_owner_where_others_read(
    tmp_path: Path, user: str, chat: dict[str, object], proposed: int
):
    async with harness(tmp_path, [SKILL, Say("Built.")], PEOPLE) as here:
        await here.platform.say("Build it", user=user, addressed=True, **chat)
        await here.shown(1, str(chat["chat"]))
        await here.rest()
        await here.gateway.runtime.learner.close()
        await here.gateway.delivery.idle()

        assert len(await here.store.proposals.waiting()) == proposed
        assert not any("Learned" in each.text for each in here.platform.chats.of(str(chat["chat"])))


async def test_the_owner_is_asked_once_about_a_folder_that_speaks(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("Use tabs.\n")
    folders = f"workspace: {work}\n"
    platform = FakePlatform(replace(ABILITIES, longest_message=2_000))
    async with harness(tmp_path, lambda _: Say("Hello."), PEOPLE, platform, gateway=folders) as here:
        await here.platform.say("Hi", user="8", chat="2")
        await here.shown(1, "2")
        assert "Do you trust the files of" in await asked(here, "Hi", 2)
        question = here.platform.chats.of("1")[-1]
        assert "AGENTS.md speaks to the agent" in question.text
        assert question.buttons == ("Trust", "This time", "No")
        assert await here.ask("And you?") == "Hello."

        await here.platform.press(question.id, 0)
        told = (await here.shown(4))[-1].text
        await here.rest()

        assert f"{work} is trusted." in told
        assert here.gateway.runtime.folders.is_trusted(str(work))
        assert len(here.platform.chats.of("1")) == 4
        assert len(here.platform.chats.of("2")) == 1
