"""One journey over a goal, its agents, cards and a scheduled job, while workers are killed: all of it happens once.

`--full`: on both databases, and again and again until 100 workers were killed on each.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.goals import Wish, add_criterion, criterion_of, set_goal
from hermes_agent.app.settings import SERVED
from hermes_agent.app.system import System
from hermes_agent.app.work.cron_drafts import Draft
from hermes_agent.app.work.cron_jobs import CronService
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.events import RunEnded
from hermes_agent.core.messages import ToolCall, ToolResult
from hermes_agent.core.spending import Scope
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.store.work.cards import CLOSED, Status
from hermes_agent.store.work.children import State as ChildState
from hermes_agent.store.work.goals import PURSUED_STATES, Goal, State
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import settle_home
from tests.databases import empty_database
from tests.faults.work.test_cron import Workers, workers

ANN = Principal(platform="ntfy", user="ann", standing=Standing.OWNER)
NEWS = Conversation(platform="ntfy", chat="news")
AHEAD = 4
"""Seconds until the job is due, counted from when the cards are there."""
TOKENS = 2_000_000
KILLS = {False: 3, True: 100}
MOST_KILLS = 12
"""The kills in one journey."""
PATIENCE = 240.0
MORE = """
store: {{url: '{url}'}}
gateway:
  channels:
    ntfy: {{enabled: true, owners: [ann], home: news}}
board:
  checks:
    begun: {{command: grep -qx 'card 1' effects}}
    kept: {{command: grep -qx 'card 2' effects}}
    released: {{command: 'for n in $(seq 600); do test -s released && exit 0; sleep 0.1; done; exit 1'}}
"""
CHILD, CARD = "You work for another agent", "You work alone on one card"
TITLES = ("card 1", "card 2", "card 3")
EFFECTS = {"child 1": 1, "child 2": 1, "card 1": 1, "card 3": 1, "job": 1}


# The model


def script(heard: Heard) -> Answer:
    """Each role does one thing by a command; the goal's session gives work away and waits for the last card."""
    if CHILD in heard.system:
        piece = acts(heard, Say("Did it."))
    elif CARD in heard.system:
        piece = acts(heard, Call("kanban_complete", {"summary": "Did it."}), Say("Done."))
    elif "Release the work" in said(heard):
        piece = acts(heard, Say("Released."), more="; echo yes > released")
    else:
        piece = leads(heard)
    return Answer(pieces=(piece,), pace=Pace(first=0.2))


def said(heard: Heard) -> str:
    return next(message.text for message in heard.messages if message.role == "user")


def acts(heard: Heard, *after: Call | Say, more: str = "") -> Call | Say:
    """Leave a line in a file, then the rest."""
    line = re.findall("child [12]|card [123]|job", said(heard))[0]
    step = len(results(heard))
    if step == 0:
        return Call("terminal", {"command": f"sleep 0.5; echo {line} >> effects{more}"})
    return after[min(step, len(after)) - 1]


def leads(heard: Heard) -> Call | Say:
    found = results(heard)
    if not found:
        return Call("delegate_task", {"tasks": [{"goal": "Leave child 1."}, {"goal": "Leave child 2."}]})
    made = [re.findall(r"t_[0-9a-f]{6}", text)[0] for name, text in found if name == "kanban_create"]
    if len(made) < len(TITLES):
        return used("kanban_create", **card(len(made), made, folder_of(heard)))
    if heard.messages[-1].role != "tool":
        return used("kanban_show", card=made[-1])
    name, text = found[-1]
    if name == "kanban_create" or f"{made[-1]}: done" in text:
        return Say(f"{len(made)} cards are made.")
    return Call("terminal", {"command": "sleep 0.7"}) if name == "kanban_show" else used("kanban_show", card=made[-1])


def card(number: int, made: list[str], folder: str) -> dict[str, object]:
    workspace = "scratch" if number == 1 else f"dir:{folder}"
    check = ("begun", "kept", "released")[number]
    return {"title": TITLES[number], "parents": made, "workspace": workspace, "check": check}


def folder_of(heard: Heard) -> str:
    """The project, which the goal's words name."""
    return said(heard).partition("in the folder ")[2].partition(" .")[0]


def used(name: str, **arguments: object) -> Call:
    return Call("use_tool", {"name": name, "arguments": arguments})


def results(heard: Heard) -> list[tuple[str, str]]:
    """The tools that were called, with their answers."""
    parts = [part for message in heard.messages for part in message.parts]
    calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
    return [(_name(calls[part.call_id]), part.text) for part in parts if isinstance(part, ToolResult)]


def _name(call: ToolCall) -> str:
    if call.name != "use_tool":
        return call.name
    return str(call.arguments["name"])


# The journey


@dataclass
class Journey:
    """A goal on its way, as the test sees it by a process of its own."""

    system: System
    project: Path
    goal: str

    async def one_goal(self) -> Goal:
        found = await self.system.store.goals.get(self.goal)
        assert found is not None
        return found

    async def cards(self) -> list[str]:
        rows = await self.system.store.boards.list_cards()
        return sorted((row.id for row in rows), key=lambda each: next(r.title for r in rows if r.id == each))

    async def rows(self, text: str) -> list[tuple]:
        return [tuple(row) for row in await self.system.store.read(lambda tx: tx.rows(text))]

    async def is_spared(self) -> bool:
        """Whether a run is under way that died once: one that the program dies of twice is put aside, by design."""
        return bool(await self.rows("SELECT id FROM lane WHERE owner IS NOT NULL AND crashes > 0"))

    async def is_stuck(self) -> bool:
        goal = await self.one_goal()
        return goal.state not in (*PURSUED_STATES, State.DONE) or bool(
            await self.rows("SELECT id FROM card WHERE status = 'blocked'")
        )

    async def is_over(self) -> bool:
        goal = await self.one_goal()
        open_ = await self.rows("SELECT id FROM card WHERE ended IS NULL")
        due = await self.rows("SELECT job FROM cron_instant WHERE ended IS NULL")
        runs = await self.rows("SELECT card FROM card_run WHERE ended IS NULL")
        mail = await self.rows("SELECT id FROM inbox WHERE ended IS NULL")
        return goal.state not in PURSUED_STATES and not (goal.untold or open_ or due or runs or mail)


@asynccontextmanager
async def begun(folder: Path, home: Home) -> AsyncIterator[Journey]:
    """A goal that a process began, and left."""
    project = folder / "project"
    project.mkdir()
    async with open_system(home, Options(queue=SERVED)) as first:
        record = await first.hermes.open_session(NEWS, ANN, workspace=str(project))
        text = f"Do the work in the folder {project} ."
        wish = Wish(text=text, criteria=(criterion_of("command", "test -s released"),), tokens=TOKENS)
        goal = await set_goal(Access(system=first, who=ANN, session=record.id), wish)
    async with open_system(home) as system:
        yield Journey(system, project, goal.id)


async def go_on(journey: Journey, running: Workers, chance: random.Random, kills: int) -> int:
    """Kill and start workers until the journey is over; how many were killed. Once the last card is there it becomes a
    criterion, and the job is made."""
    killed, is_made, ends = 0, False, monotonic() + PATIENCE
    while not await journey.is_over():
        assert monotonic() < ends and not await journey.is_stuck(), await told(journey)
        await asyncio.sleep(chance.uniform(0.3, 1.5))
        if not is_made and len(ids := await journey.cards()) == len(TITLES):
            await released(journey, ids[-1])
            is_made = True
        if killed < kills and not await journey.is_spared():
            number = chance.randrange(running.count)
            running.kill(number)
            running.start(number)
            killed += 1
    return killed


async def released(journey: Journey, last: str) -> None:
    system = journey.system
    await add_criterion(Access(system=system, who=ANN), criterion_of("board", last), journey.goal)
    service = CronService(store=system.store, clock=system.clock, settings=system.settings, home=system.home)
    draft = Draft(
        name="release",
        schedule=f"in {AHEAD}s",
        prompt="Release the work, and leave job.",
        folder=str(journey.project),
        deliver="ntfy",
    )
    await service.create(ANN, draft)


async def told(journey: Journey) -> str:
    """Where it stands, for a failure."""
    tables = {
        "card": "SELECT id, status, owner, epoch FROM card",
        "card_run": "SELECT card, epoch, kind, outcome, ended FROM card_run",
        "child": "SELECT session, state, outcome FROM child",
        "cron_instant": "SELECT job, state, why, attempts, words FROM cron_instant",
        "lane": "SELECT id, queue, pending, owner, crashes, attempts, error FROM lane",
        "inbox": "SELECT source, source_id, state, reason FROM inbox",
        "goal_round": "SELECT * FROM goal_round",
    }
    goal = await journey.one_goal()
    found = [f"{goal.state} {goal.why} {goal.unmet}"]
    found += [f"{name}: {row}" for name, text in tables.items() for row in await journey.rows(text)]
    return "\n".join(found)


# What must hold


async def check(journey: Journey) -> None:
    store, where = journey.system.store, await told(journey)
    goal = await journey.one_goal()
    assert (goal.state, goal.untold) == (State.DONE, ""), where
    receipts = await store.goals.receipts(goal.id)
    last = {each.criterion: each.verdict for each in receipts if each.round == receipts[0].round}
    assert last == {str(each): "met" for each in goal.criteria}, where
    assert len(last) == 2

    await check_work(journey, goal, where)
    await check_news(journey, goal, where)
    sums = await journey.rows(f"SELECT sum(input + output), count(*) FROM usage WHERE job = '{goal.job}'")
    spent = await store.usage.spent(Scope.JOB, (goal.job,))
    assert 0 < sums[0][0] <= spent.tokens <= TOKENS, where


async def check_work(journey: Journey, goal: Goal, where: str) -> None:
    """Each child, card and instant ended once, with its effect."""
    store = journey.system.store
    children = await store.children.of(goal.session)
    assert [(each.n, each.state, each.outcome) for each in children] == [
        (number, ChildState.ENDED, "answered") for number in (1, 2)
    ], where
    sessions = [each.session for each in children]
    cards = [await store.boards.get(each) for each in await journey.cards()]
    assert [each.status for each in cards] == [Status.DONE] * 3, where
    assert Status.DONE in CLOSED
    for each in cards:
        kinds = Counter(event.kind for event in await store.boards.events(each.id))
        assert kinds["complete"] == 1, where
        runs = {run.session for run in await store.card_runs.of(each.id) if run.session}
        assert len(runs) == 1, where
        sessions += runs
    instants = await journey.rows("SELECT state, counts, session FROM cron_instant")
    assert [row[:2] for row in instants] == [("ran", 1)], where
    for session in (*sessions, instants[0][2]):
        ends = [each.event for each in await store.history.entries(session) if isinstance(each.event, RunEnded)]
        assert [each.outcome for each in ends] == ["answered"], (session, ends, where)
    assert Counter((journey.project / "effects").read_text().splitlines()) == EFFECTS, where
    assert (Path(cards[1].folder) / "effects").read_text().splitlines() == ["card 2"], where


async def check_news(journey: Journey, goal: Goal, where: str) -> None:
    """Mail and letters are there once, in order: what the session said, and at the end that the goal is done."""
    mail = await journey.rows("SELECT source, source_id, state FROM inbox ORDER BY id")
    assert {row[2] for row in mail} == {"answered"}, where
    rounds = [row[1] for row in mail if row[0] == "goal"]
    numbers = [[int(part) for part in each.split(":")[1:3]] for each in rounds if not each.endswith("begin")]
    assert numbers == sorted(numbers), where
    letters = await journey.rows("SELECT key, body FROM outbox ORDER BY id")
    words = [json.dumps(json.loads(body)) for _, body in letters]
    assert sum("is done" in each for each in words) == 1, letters
    assert "is done" in words[-1], letters
    assert sum(key.startswith("cron:") for key, _ in letters) == 1, letters
    runs = [
        each for each in await journey.system.store.history.entries(goal.session) if isinstance(each.event, RunEnded)
    ]
    assert len(letters) == len(runs) + 2, letters


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
async def test_work_of_every_kind_happens_once_however_often_workers_are_killed(
    tmp_path: Path, dialect: str, request: pytest.FixtureRequest, full: bool
):
    if dialect == "postgres" and not full:
        pytest.skip("with --full")
    chance, left = random.Random(11), KILLS[full]
    with serving_in_thread(openai_model(script, keys=())) as model:
        while left > 0:
            folder = tmp_path / f"{left}-left"
            folder.mkdir()
            url = empty_database(dialect, request, folder)
            home = settle_home(folder / "home", model.url, MORE.format(url=url))
            left -= await journeyed(folder, home, chance, min(left, MOST_KILLS))


async def journeyed(folder: Path, home: Home, chance: random.Random, kills: int) -> int:
    """One journey; how many workers were killed."""
    async with begun(folder, home) as journey:
        with workers(home, 3) as running:
            killed = await go_on(journey, running, chance, kills)
        await check(journey)
    return killed
