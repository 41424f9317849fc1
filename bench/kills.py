"""A long run that is killed with `kill -9` at 200 random moments and taken up again each time."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from bench.long_run import REPORT, TASK, TURNS, LongRun, source_tree
from hermes_agent.agent.session import Session, fold
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.events import Entry, MessageTaken, Replied, RunEnded, ToolEnded
from hermes_agent.core.messages import Message, ToolResult
from hermes_agent.store.database import open_store
from hermes_agent.testing.model_servers import KEY, openai_model, serving_in_thread
from tests.children import started

PATIENCE = 60.0
KILLS = 200
SEED = 7


def measure() -> list[Figure]:
    """How many runs were not as they should be after their kills, and how many kills there were."""
    script: list[LongRun] = []
    chance, wrong, runs = random.Random(SEED), 0, 0
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_in_thread(openai_model(lambda heard: script[0](heard))) as server,
    ):
        work = Work(Path(folder), server.url)
        script.append(work.prepare())
        assert work.whole() == REPORT
        expected = work.transcript()
        while work.kills < KILLS:
            work.prepare()
            runs += 1
            reply = work.killed(chance, kills=min(12, KILLS - work.kills), shortest=0.3, longest=1.2)
            wrong += reply != REPORT or wrong_after(work, script[0], expected) != []
    return [
        Figure(name="runs that were not as without kills", value=wrong, unit=f"of {runs}", limit=0),
        Figure(name="kills", value=work.kills, unit="kills"),
    ]


@dataclass
class Work:
    """A folder with the source tree, a home, and the model's address."""

    folder: Path
    url: str
    kills: int = 0

    def prepare(self) -> LongRun:
        """A fresh workspace and home at the same paths."""
        for name in ("home", "work", "pristine"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir()
        config = f"model:\n  default: custom/m\n  base_url: {self.url}\n"
        (self.folder / "home" / "config.yaml").write_text(config)
        source_tree(self.folder / "pristine")
        return LongRun(source_tree(self.folder / "work"))

    def child(self, *arguments: str) -> subprocess.Popen[bytes]:
        """The program on this work, in a process of its own."""
        return started(*arguments, home=self.folder / "home", folder=self.folder / "work", CUSTOM_API_KEY=KEY)

    def whole(self) -> str:
        """Run without a kill; the reply."""
        return self.finished(self.child("-z", TASK))

    def finished(self, child: subprocess.Popen[bytes]) -> str:
        """Wait for a child's reply."""
        out, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 0, (child.returncode, out, err)
        return out.decode().strip()

    def killed(self, chance: random.Random, *, kills: int, shortest: float, longest: float) -> str:
        """Run, kill after a random time, take up again, until so many kills are done; then let it finish.

        Returns the reply. A child that finished before its time is no kill.
        """
        arguments = ["-z", TASK]
        while True:
            child = self.child(*arguments)
            try:
                out, err = child.communicate(timeout=chance.uniform(shortest, longest) if kills > 0 else PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                self.kills, kills = self.kills + 1, kills - 1
                arguments = ["-c", "-z", ""]
                continue
            assert child.returncode == 0, (child.returncode, out, err)
            if out.strip():
                return out.decode().strip()
            if ended := [entry.event for entry in self.log() if isinstance(entry.event, RunEnded)]:
                return ended[-1].text  # killed between the end and the last word
            arguments = ["-c", "-z", TASK]  # killed before the message was accepted: nothing was promised

    def transcript(self) -> list[str]:
        """What the model is shown, as lines, without the runtime's notes, which hold the time."""
        shown = [message for message in fold(Session(id="s"), self.log()).messages if not message.is_runtime]
        return [f"{message.role}: {_words(message)}" for message in shown]

    def log(self) -> list[Entry]:
        """Everything that happened."""
        return asyncio.run(self._log())

    async def _log(self) -> list[Entry]:
        store = await open_store(str(self.folder / "home" / "hermes.db"), clock=SystemClock())
        try:
            records = await store.sessions.list()
            assert len(records) <= 1, "a kill made a second session"
            return await store.history.entries(records[0].id) if records else []
        finally:
            await store.close()


def wrong_after(work: Work, script: LongRun, expected: list[str]) -> list[str]:
    """What is not as it would be without the kills: files, results given twice, the transcript, the numbers of the log,
    messages and replies."""
    log = work.log()
    wrong = script.expected(work.folder / "work", work.folder / "pristine")
    wrong += [f"{call} has two results" for call in twice(log)]
    if work.transcript() != expected:
        wrong.append("the transcript is another one")
    if [entry.number for entry in log] != list(range(1, len(log) + 1)):
        wrong.append("the numbers of the log have gaps")
    if sum(isinstance(entry.event, MessageTaken) for entry in log) != 1:
        wrong.append("the message was taken more than once")
    if sum(isinstance(entry.event, Replied) for entry in log) != TURNS:
        wrong.append("a reply is missing or there twice")
    return wrong


def _words(message: Message) -> str:
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    calls = [f"{call.name} {dict(call.arguments)}" for call in message.tool_calls]
    return " | ".join([message.text, *calls, *results])


def twice(entries: list[Entry]) -> list[str]:
    """The calls whose result is in the log more than once."""
    ended = [entry.event.call_id for entry in entries if isinstance(entry.event, ToolEnded)]
    return sorted({call for call in ended if ended.count(call) > 1})
