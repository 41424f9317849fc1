"""kill -9 at the commits of a goal: no continuation is lost or doubled, and each round has its receipt."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.core.events import MessageTaken, Notice, RunEnded
from hermes_agent.providers.demo.script import Say
from hermes_agent.store.database import open_store
from hermes_agent.store.work.goals import State
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import settle_home
from tests.databases import empty_database
from tests.measured import path_of

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests" / "faults" / "programs" / "goal_pursuer.py"


def pursued(home: Path, folder: Path, turns: int, kill: int = 0) -> tuple[int, int]:
    """The exit code of a process that pursues the goal, and how many commits it made."""
    environment = {"PATH": os.defpath, "PYTHONPATH": f"{path_of(ROOT / 'src')}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, str(PROGRAM), str(home), str(folder), str(turns), str(kill)]
    done = subprocess.run(words, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, -9), done.stderr.decode()
    return done.returncode, int(done.stdout or 0)


async def check_whole(url: str, turns: int) -> None:
    """Nothing was lost or doubled."""
    store = await open_store(url)
    try:
        (goal,) = await store.goals.list(ended=True)
        entries = await store.history.entries(goal.session)
        receipts = await store.goals.receipts(goal.id, 1000)
        mail = await store.read(lambda tx: tx.rows("SELECT source_id, state FROM inbox WHERE source = 'goal'"))
        rounds = await store.read(lambda tx: tx.rows("SELECT round, ended FROM goal_round ORDER BY round"))
    finally:
        await store.close()
    taken = [entry.event.inbox for entry in entries if isinstance(entry.event, MessageTaken) and entry.event.inbox]
    ends = [entry for entry in entries if isinstance(entry.event, RunEnded)]
    news = [entry.event.text for entry in entries if isinstance(entry.event, Notice) and entry.event.level == "news"]
    assert (goal.state, goal.turns) == (State.LIMITED, turns)
    assert len(news) == 1, news
    assert len(taken) == len(set(taken)) == turns
    assert len(ends) == turns
    assert len(mail) == turns
    assert {state for _, state in mail} == {"answered"}
    assert [number for number, _ in rounds] == list(range(1, turns + 1))
    assert all(ended for _, ended in rounds)
    assert len({each.round for each in receipts}) == len(receipts) == turns


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
async def test_a_goal_that_is_killed_at_a_commit_ends_as_if_it_never_was(
    tmp_path: Path, dialect: str, request: pytest.FixtureRequest, full: bool
):
    turns = 20 if full else 2
    with serving_in_thread(openai_model(lambda _: Say("It is done."), keys=())) as server:

        async def tried(name: str, kill: int) -> int:
            folder = tmp_path / name
            (folder / "work").mkdir(parents=True)
            url = empty_database(dialect, request, folder)
            home = settle_home(folder / "home", server.url, f"store:\n  url: '{url}'\n").root
            code, commits = pursued(home, folder / "work", turns, kill)
            if kill:
                assert code == -9
                pursued(home, folder / "work", turns)
            await check_whole(url, turns)
            return commits

        commits = await tried("whole", 0)
        some = {1, commits // 2, commits - 1}  # The last but one tells the news.
        for kill in range(1, commits + 1) if full else sorted(some):
            await tried(f"killed-{kill}", kill)
