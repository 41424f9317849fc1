"""Another program blocks the log: a stop ends the run all the same, and nothing that was said is lost."""

import asyncio
import signal
import time

import pytest

from hermes_agent.agent.journal import LAST_WORDS
from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.core.events import Notice, Outcome, RunEnded
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness
from tests.store.sqlite.test_engine_frozen import frozen


class Asked:
    """A model that holds its reply back."""

    def __init__(self) -> None:
        self.asked, self.answers = asyncio.Event(), asyncio.Event()
        self._model = ScriptedModel([Say("Here."), Say("Again.")])

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    async def ask(self, request):
        self.asked.set()
        await self.answers.wait()
        async for item in self._model.ask(request):
            yield item


async def test_a_stop_does_not_wait_for_the_program_that_blocks_the_log(tmp_path):
    model = Asked()
    async with Harness(tmp_path, model).open() as harness:
        await harness.tell("Hello")
        following = asyncio.create_task(harness.ended())
        await model.asked.wait()
        with frozen(tmp_path / "hermes.db") as process:
            blocked = asyncio.create_task(harness.store.write(lambda tx: tx.run("UPDATE session SET title = title")))
            while not harness.store.engine.blocked:
                await asyncio.sleep(0.05)
            began = time.monotonic()
            harness.hermes.stop_now(harness.session)
            with pytest.raises(DatabaseUnreachable, match=f"could not be written. The .* by process {process.pid} "):
                await following
            assert time.monotonic() - began < 2.0
        await blocked
        while harness.hermes.runs(harness.session):
            await asyncio.sleep(0.01)
        ends = [entry.event for entry in await harness.log() if isinstance(entry.event, RunEnded)]

    assert [(end.outcome, end.text) for end in ends] == [(Outcome.STOPPED, "Stopped.")]


async def test_a_stop_while_the_end_is_written_leaves_the_answer_as_it_is(tmp_path):
    model = Asked()
    async with Harness(tmp_path, model).open() as harness:
        await harness.tell("Hello")
        following = asyncio.create_task(harness.ended())
        await model.asked.wait()
        with frozen(tmp_path / "hermes.db") as process:
            model.answers.set()
            journal = harness.hermes.scheduler.journal_of(harness.session)
            while journal.session.running:
                await asyncio.sleep(0.01)
            harness.hermes.stop_now(harness.session)
            await asyncio.sleep(LAST_WORDS + 0.2)  # Nobody is known yet to block it.
            process.send_signal(signal.SIGCONT)
            ended = await following

    assert (ended.outcome, ended.text) == (Outcome.ANSWERED, "Here.")


async def test_what_is_told_of_a_wait_is_shown_at_once_and_not_kept(tmp_path):
    async with Harness(tmp_path, ScriptedModel([Say("Here.")])).open() as harness:
        watching = asyncio.create_task(harness.until(Notice))
        await harness.tell("Hello")
        while (journal := harness.hermes.scheduler.journal_of(harness.session)) is None:
            await asyncio.sleep(0)
        journal.notify("Waiting for somebody.")
        seen = await watching
        await harness.ended()
        kept = [entry.event for entry in await harness.log() if isinstance(entry.event, Notice)]

    assert (seen.event.text, seen.event.level, seen.event.live) == ("Waiting for somebody.", "warning", True)
    assert kept == []
