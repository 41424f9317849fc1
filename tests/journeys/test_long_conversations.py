"""A conversation far longer than its window: what was said early is still there, or one search away."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import ServerFailed
from hermes_agent.core.events import Compacted, Outcome, Pinned, RunEnded, Seen
from hermes_agent.core.messages import Role, ToolResult
from hermes_agent.memory.tools import ConversationTools
from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.agent.compaction.harness import Small, Window, small
from tests.agent.harness import tool
from tests.memory.harness import Call as Asked

TURNS, TURNS_FULL = 110, 300
FACTS = {
    1: ("The task is to move the archive to Zanzibar.", "What is the task with the archive?"),
    3: ("Constraint: never touch the ledger called Quokka.", "Which ledger must not be touched?"),
    5: ("The path is /srv/marmalade/inbox.", "Under which path is the inbox?"),
    8: ("We decided on the Wisteria format.", "Which format did we decide on?"),
    12: ("Open todo: ask Perpetua about invoices.", "Who is to be asked about invoices?"),
    16: ("Constraint: no more than nineteen requests in a minute.", "How many requests in a minute are allowed?"),
    20: ("The port number is 48213.", "What is the port number?"),
    26: ("The second path is /var/lib/obsidian/queue.db.", "What is the second path?"),
    33: ("My sister's code word is Halcyon.", "What is my sister's code word?"),
    40: ("We decided against the Juniper parser.", "Which parser did we decide against?"),
    47: ("The backup lives in Reykjavik.", "Where does the backup live?"),
    53: ("Open todo: renew the certificate of thimble.example.", "Which certificate is to be renewed?"),
    60: ("Use the Ostrich compiler for it.", "Which compiler shall be used?"),
    65: ("The invoices are numbered from 77120 on.", "From which number are the invoices numbered?"),
    70: ("Constraint: answer Bartholomew in French.", "In which language is Bartholomew answered?"),
    75: ("The branch is called feature/saffron-import.", "How is the branch called?"),
    80: ("The budget is 731 crowns.", "How many crowns is the budget?"),
    86: ("We decided that Tuesday is the day of the release.", "On which day is the release?"),
    92: ("Open todo: delete the tables of the Marigold trial.", "Which tables are to be deleted?"),
    99: ("The contact at the harbour is Evangeline Okonkwo.", "Who is the contact at the harbour?"),
}
"""Twenty: the task, constraints, paths, decisions, open todos, names, numbers; each with how it is asked for later."""


def chatter(heard: Heard) -> object:
    """Reads something now and then, and talks a lot."""
    if "You keep the record" in heard.system:
        return Say("## Task\nSomething was done.")
    if heard.last.role is Role.USER and "look" in heard.last.text:
        return Call("read", {"n": heard.turn})
    return Say(f"Answer {heard.turn}: " + "indeed " * 60)


def failing(heard: Heard) -> object:
    if "You keep the record" in heard.system:
        raise ServerFailed("down")
    return chatter(heard)


def lying(heard: Heard) -> object:
    return Say("much " * 20_000) if "You keep the record" in heard.system else chatter(heard)


def words(number: int) -> str:
    look = " Please look." if number % 3 == 0 else ""
    fact, _ = FACTS.get(number, ("Nothing new here, go on as before. " * 8, ""))
    return f"Message {number}. {fact}{look}"


class Hanging(Window):
    """Answers in the conversation, and never with a summary."""

    async def ask(self, request):
        if request.purpose == "compression":
            await asyncio.Event().wait()
        async for item in super().ask(request):
            yield item


@pytest.fixture
def turns(full: bool) -> int:
    return TURNS_FULL if full else TURNS


async def held(harness: Small, turns: int) -> None:
    """A whole conversation, and what must hold of it."""
    async with harness.open():
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(Pinned(pin="1", text="read only", denies=(Capability.FS_WRITE,)))
        for number in range(1, turns + 1):
            ended = await harness.say(words(number))
            assert ended.outcome is Outcome.ANSWERED
        last = [request for request in harness.model.requests if request.purpose == "chat"][-1]
        shown = "\n".join(message.text for message in last.messages)
        assert len(FACTS) == 20

        assert words(turns) in shown
        assert "- read only" in shown
        for fact, question in FACTS.values():
            assert fact in shown or fact in await found(harness, question)
        for request in harness.model.requests:
            calls = [call.id for message in request.messages for call in message.tool_calls]
            results = [
                part.call_id for message in request.messages for part in message.parts if isinstance(part, ToolResult)
            ]
            assert calls == results
        assert (await harness.kinds()).count("message_taken") == turns


async def found(harness: Small, question: str) -> str:
    """What one call of the tool brings."""
    answer = await ConversationTools(lambda: harness.store).session_search(
        Asked(speaker="", session=harness.session), question
    )
    return answer.parts[0].text.replace("**", "")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("window", [8_000, 16_000, 200_000])
async def test_what_was_said_is_shown_or_one_search_away(tmp_path, window, turns):
    harness = small(tmp_path, chatter, window=window)
    await held(harness, turns)

    async with harness.open():
        made = [entry.event for entry in await harness.log() if isinstance(entry.event, Compacted)]
    assert bool(made) == (window < 200_000)
    for request in harness.model.requests:
        assert sum(map(len, (message.text for message in request.messages))) / 4 < window


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("script", [failing, lying], ids=["failing", "lying"])
async def test_so_it_is_with_a_writer_of_summaries_that_fails_or_lies(tmp_path, script, turns):
    await held(small(tmp_path, script, window=8_000), turns)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_so_it_is_with_a_writer_of_summaries_that_hangs(tmp_path, turns):
    harness = small(tmp_path, chatter, window=8_000)
    harness.model, harness.seconds = Hanging(chatter, window=8_000), 0.05
    await held(harness, turns)


class Slow(Window):
    """Never comes to an end with a summary."""

    def __init__(self) -> None:
        super().__init__(chatter, window=8_000)
        self.writing = asyncio.Event()

    async def ask(self, request):
        if request.purpose == "compression":
            self.writing.set()
            await asyncio.Event().wait()
        async for item in super().ask(request):
            yield item


async def test_a_run_that_ends_in_the_middle_of_a_compaction_goes_on_from_the_log(tmp_path):
    """The process leaves while the summary is being written: nothing of it is in the log, and the next one makes it."""
    harness = small(tmp_path, chatter, window=8_000)
    harness.model = slow = Slow()
    harness.seconds = 60.0
    async with harness.open():
        while not slow.writing.is_set():
            after = await harness.store.history.last_number(harness.session)
            await harness.tell(words(1))
            async with aclosing(harness.hermes.watch(harness.session, after)) as events:
                await until_over(events, slow.writing)
        assert "compacted" not in await harness.kinds()
        after = await harness.store.history.last_number(harness.session)
    harness.model = Window(chatter, window=8_000)
    async with harness.open():
        assert await harness.hermes.resume(harness.session)
        ended = await harness.ended(after)

        assert ended.outcome is Outcome.ANSWERED
        assert "compacted" in await harness.kinds()


async def until_over(events: AsyncGenerator[Seen, None], writing: asyncio.Event) -> None:
    """Return at the end of the run, or when a summary is being written."""
    async with asyncio.TaskGroup() as group:
        ended = group.create_task(_ended(events))
        wrote = group.create_task(writing.wait())
        await asyncio.wait((ended, wrote), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        wrote.cancel()


async def _ended(events: AsyncGenerator[Seen, None]) -> None:
    async for seen in events:
        if isinstance(seen.event, RunEnded):
            return


async def test_what_is_pinned_read_only_stays_so_after_a_compaction(tmp_path):
    written = tool("write", "written", Effect.WRITES)
    written.needs = frozenset({Capability.FS_WRITE})

    def script(heard: Heard) -> object:
        if heard.last.role is Role.USER and "write it" in heard.last.text:
            return Call("write", {})
        return chatter(heard)

    harness = small(tmp_path, script, window=4_000)
    harness.tools = (*harness.tools, written)
    async with harness.open():
        async with harness.hermes.holding(harness.session) as journal:
            await journal.commit(Pinned(pin="1", text="read only", denies=(Capability.FS_WRITE,)))
        for number in range(1, 30):
            await harness.say(words(number))
        assert "compacted" in await harness.kinds()
        await harness.say("Now write it.")

    assert written.calls == []
