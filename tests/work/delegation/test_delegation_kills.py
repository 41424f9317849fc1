"""`kill -9` of a parent with three children: each report comes once, and no command of a child runs twice."""

import asyncio
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.events import MessageTaken, RunEnded, ToolEnded
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.store.database import open_store
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.children import started

GOALS = ("alpha", "beta", "gamma")
SEED = 31
PATIENCE = 60.0


def script(heard: Heard) -> Piece:
    """A parent that delegates three goals, in the background where it is told so; each child leaves lines in a file."""
    spoken = sum(message.role == "assistant" for message in heard.messages)
    if "You work for another agent" not in heard.system:
        tasks, told = [{"goal": goal} for goal in GOALS], heard.messages[0].text
        return Say("All done.") if spoken else Call("delegate_task", {"tasks": tasks, "background": told == "Later"})
    goal = next(goal for goal in GOALS if any(f"Your goal: {goal}" in message.text for message in heard.messages))
    return (
        Say(f"Report of {goal}.") if spoken > 1 else Call("terminal", {"command": f"echo {goal}{spoken} >> done.txt"})
    )


class Work:
    """A home and a folder, in which the program is killed again and again."""

    def __init__(self, folder: Path, url: str) -> None:
        self.home, self.work, self.kills = folder / "home", folder / "work", 0
        self.home.mkdir(parents=True)
        self.work.mkdir()
        config = f"model:\n  default: custom/m\n  base_url: {url}\nterminal: {{jail: none}}\n"
        (self.home / "config.yaml").write_text(config)

    def killed(self, chance: random.Random, kills: int, said: str = "Go") -> str:
        """Run, kill after a random time and take up again, so many times; then let it finish. Its reply."""
        words = ["-z", said]
        while True:
            child = started(*words, home=self.home, folder=self.work)
            try:
                out, err = child.communicate(timeout=chance.uniform(0.25, 1.0) if kills > 0 else PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                self.kills, kills = self.kills + 1, kills - 1
                words = ["-c", "-z", ""]
                continue
            assert child.returncode == 0, (child.returncode, out, err)
            if out.strip() or asyncio.run(self.ends()):
                return (out.decode().splitlines() or ["All done."])[-1]
            words = ["-c", "-z", said]  # killed before the message was accepted: nothing was promised

    async def ends(self) -> list[str]:
        return [event.text for event in (await self.events())[0] if isinstance(event, RunEnded)]

    async def events(self) -> tuple[list[object], list[str]]:
        """The events of the parent, and the outcome of each child."""
        store = await open_store(str(self.home / "hermes.db"), clock=SystemClock())
        try:
            records = [record for record in await store.sessions.list() if record.surface == "cli"]
            if not records:
                return [], []
            entries = await store.history.entries(records[0].id)
            return [entry.event for entry in entries], [each.outcome for each in await store.children.of(records[0].id)]
        finally:
            await store.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_parent_finds_its_children_and_gets_each_report_once(tmp_path, full):
    most, chance = 100 if full else 5, random.Random(SEED)
    kills = rounds = 0
    with serving_in_thread(openai_model(script, keys=())) as server:
        while kills < most and rounds < 3 * most:
            rounds += 1
            work = Work(tmp_path / str(rounds), server.url)
            assert work.killed(chance, min(4, most - kills)) == "All done."
            kills += work.kills
            events, outcomes = asyncio.run(work.events())
            told = [event for event in events if isinstance(event, ToolEnded)]
            words = told[0].message.parts[0].text

            assert outcomes == ["answered"] * 3
            assert len(told) == 1
            assert [words.count(f"Report of {goal}.") for goal in GOALS] == [1, 1, 1]
            lines = Counter((work.work / "done.txt").read_text().split())
            assert lines == {f"{goal}{step}": 1 for goal in GOALS for step in (0, 1)}
    assert kills >= most


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_reports_of_agents_in_the_background_come_once_however_often_all_is_killed(tmp_path, full):
    most, chance = 40 if full else 3, random.Random(SEED)
    kills = rounds = 0
    with serving_in_thread(openai_model(script, keys=())) as server:
        while kills < most and rounds < 3 * most:
            rounds += 1
            work = Work(tmp_path / str(rounds), server.url)
            assert work.killed(chance, min(3, most - kills), "Later") == "All done."
            kills += work.kills
            events, outcomes = asyncio.run(work.events())
            words = "".join(event.message.text for event in events if isinstance(event, MessageTaken))

            assert outcomes == ["answered"] * 3
            assert [words.count(f"Report of {goal}.") for goal in GOALS] == [1, 1, 1]
            lines = Counter((work.work / "done.txt").read_text().split())
            assert lines == {f"{goal}{step}": 1 for goal in GOALS for step in (0, 1)}
    assert kills >= most
