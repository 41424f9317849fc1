"""Skills from the command line and in the chat: `-s NAME`, `/skill words`, bundles, several at once."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hermes_agent.app.opening import open_system
from hermes_agent.app.system import System
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.options import Invocation
from hermes_agent.core.errors import ToolError
from hermes_agent.core.events import MessageTaken
from hermes_agent.core.messages import Origin
from hermes_agent.host.paths import find_home
from hermes_agent.providers.demo.script import Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.children import Said, said_by, started
from tests.skills.shelf import put

SLOT = "metadata: {hermes: {parameters: [{name: kind}]}}\n"


class Shell:
    """A person's shell, with two skills and a bundle, in front of a model."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.heard = ""
        self.work.mkdir()
        put(self.home / "skills", "tea", body="Boil {{kind}} tea. $ARGUMENTS", more=SLOT)
        put(self.home / "skills", "cup", body="Take a cup.")
        (self.home / "skill-bundles").mkdir()
        (self.home / "skill-bundles/party.yaml").write_text("skills: [cup, tea]\ninstruction: Serve it.\n")

    def answer(self, heard: Heard) -> Say:
        self.heard = next(message.text for message in reversed(heard.messages) if message.role == "user")
        return Say("Done.")

    def run(self, *arguments: str) -> Said:
        return said_by(started(*arguments, home=self.home, folder=self.work))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    with serving_in_thread(openai_model(shell.answer, keys=())) as server:
        (shell.home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")
        yield shell


def test_a_question_that_names_a_skill_uses_it(shell: Shell):
    assert shell.run("-z", "/tea green").code == 0
    assert "Boil green tea. green" in shell.heard


def test_skills_are_stacked_and_bundled_in_a_question(shell: Shell):
    shell.run("-z", "/cup /tea black")
    assert shell.heard.index("Take a cup.") < shell.heard.index("Boil black tea.")
    shell.run("-z", "/party white")
    assert shell.heard.index("Take a cup.") < shell.heard.index("Boil white tea.") < shell.heard.index("Serve it.")


def test_skills_that_are_asked_for_stand_before_the_question(shell: Shell):
    shell.run("-s", "cup,code-review", "-z", "What now?")
    assert shell.heard.index("Take a cup.") < shell.heard.index("What now?")
    assert "Reviewing a change" in shell.heard


def test_what_is_not_there_or_not_given_is_a_sentence(shell: Shell):
    missing = shell.run("-s", "nothing", "-z", "What now?")
    assert (missing.code, "There is no skill `nothing`" in missing.err) == (1, True)
    slot = shell.run("-z", "/tea")
    assert (slot.code, "`/tea` needs `kind`" in slot.err) == (1, True)
    assert shell.heard == ""


@pytest.fixture
async def runtime(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[System]:
    monkeypatch.setenv("HERMES_HOME", str(shell.home))
    monkeypatch.chdir(shell.work)
    async with open_system(find_home().ensure()) as runtime:
        yield runtime


async def test_in_the_chat_they_begin_with_the_first_message_alone(runtime: System):
    await runtime.learner.work.learned.adopt("cup", "")
    talk = ChatSession(runtime, Invocation(skills="cup"))
    await talk.open()
    for words in ("What now?", "And now?"):
        await talk.submit(talk.inbound(words))
        after = await runtime.store.history.last_number(talk.session)
        assert [seen async for seen in runtime.hermes.follow(talk.session, after)]
    entries = [entry.event for entry in await talk.entries() if isinstance(entry.event, MessageTaken)]

    assert [part.origin for part in entries[0].message.parts] == [Origin.SKILL, Origin.OWNER]
    assert sum("Take a cup." in event.message.text for event in entries) == 1


async def test_in_the_chat_a_line_uses_a_skill_or_says_what_it_needs(runtime: System):
    talk = ChatSession(runtime, Invocation())
    await talk.open()
    done = await talk.command("/tea green", busy=False)
    assert done is not None
    assert done.submit is not None
    assert "Boil green tea." in done.submit.text
    with pytest.raises(ToolError, match="needs `kind`"):
        await talk.command("/tea", busy=False)


async def test_the_chat_knows_what_a_slash_would_use(runtime: System):
    talk = ChatSession(runtime, Invocation())
    await talk.open()
    assert talk.skills == ()
    await talk.see_skills()
    names = [name for name, _ in talk.skills]
    assert names[0] == "party"
    assert {"tea", "cup", "code-review"} <= set(names)
