"""Messages on their way, in a whole system without a terminal."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_agent.app.opening import open_system
from hermes_agent.cli.chat.begin import as_written
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.chat.outgoing import Outgoing
from hermes_agent.cli.chat.transcript import Transcript
from hermes_agent.cli.options import Invocation
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Origin, Text, TextDelta
from hermes_agent.host.paths import find_home
from hermes_agent.providers.demo.script import Answer, Pace, Say
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from tests.cli.chat.test_transcript import Paper

SLOW = Answer(pieces=(Say("slow " * 100),), pace=Pace(between=0.1, characters=5))


class Sent:
    """A chat without a screen."""

    def __init__(self, session: ChatSession, model: ModelServer) -> None:
        self.session, self.model, self.back = session, model, list[str]()
        self.outputs: list[Text] = []
        self.transcript = Transcript(Paper(), session.runtime.clock, as_written)
        self.outgoing = Outgoing(session, self.transcript, lambda: self.outputs, lambda: None)
        self.outgoing.give_back = self.back.append

    async def say(self, words: str) -> None:
        await self.outgoing.submit_words(self.session.inbound(words))


@pytest.fixture
async def sent(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sent]:
    monkeypatch.chdir(project)
    async with serving(openai_model([SLOW, Say("Hello.")], keys=())) as model:
        (home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {model.url}\n")
        async with open_system(find_home().ensure()) as runtime:
            yield Sent(ChatSession(runtime, Invocation()), model)


async def test_what_no_run_has_read_is_taken_back_in_order_and_never_answered(sent: Sent):
    await sent.say("first")
    assert sent.session.record is not None
    session = sent.session.record.id
    async for seen in sent.session.runtime.hermes.watch(session):
        if isinstance(seen.event, TextDelta):
            break
    sent.transcript.waiting.clear()
    await sent.say("second")
    await sent.say("third @a.txt")

    await sent.outgoing.take_back()
    await sent.session.stop()
    await sent.session.runtime.hermes.idle()

    assert sent.back == ["second\nthird @a.txt"]
    assert sent.transcript.waiting == {}
    assert "second" not in str([exchange.messages for exchange in sent.model.asked])


async def test_a_file_that_cannot_be_read_gives_the_words_back_and_sends_nothing(sent: Sent, project: Path):
    (project / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    sent.outputs = [Text(text="! make [exit 2]:\nno\n\n", origin=Origin.TOOL)]

    with pytest.raises(HermesError, match=r"bad\.pdf cannot be read"):
        await sent.say("see @bad.pdf")

    assert sent.back == ["see @bad.pdf"]
    assert sent.model.asked == []
