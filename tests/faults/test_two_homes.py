"""Homes that share a database note, and make and change skills, while they are killed and a person edits files: nothing
is lost, nobody is named who did not do it, and every home has all of it.

`--full`: 500 messages and 30 kills.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes_agent.app.household import open_store_of
from hermes_agent.app.settings import StoreSettings
from hermes_agent.app.skills import Skills
from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.core.messages import Role, ToolCall
from hermes_agent.host.paths import Home
from hermes_agent.memory.entries import decoded, entries_of
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import MemorySettings, Target
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.skills.skill import SkillSettings
from hermes_agent.store.database import open_store
from hermes_agent.store.versions import Author, Kind
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.doubles.postgres import PostgresCluster
from tests.faults.household import Household, answered, open_session, say
from tests.skills.shelf import skill_text

SESSIONS, SKILLS = 12, 4
PATIENCE = 90.0
FILE = Target.MEMORY.file
ORDERS = ("note", "make", "patch", "delete")


def obedient(heard: Heard) -> Call | Say:
    """Do what each message says, once, in their order."""
    told = "\n".join(message.text for message in heard.messages if message.role is Role.USER)
    command_queue = [line for line in told.splitlines() if line.partition(" ")[0] in ORDERS]
    done = sum(isinstance(part, ToolCall) for message in heard.messages for part in message.parts)
    if done >= len(command_queue):
        return Say(f"It said: {heard.last.text[:200]}")
    what, name, *more = command_queue[done].split()
    match what:
        case "note":
            return Call("memory", {"target": "memory", "action": "add", "content": name})
        case "make":
            content = skill_text(name, body="End.")
            return Call("skill_manage", {"action": "create", "name": name, "content": content})
        case "patch":
            patch = {"old_string": "End.", "new_string": f"{more[0]}.\nEnd."}
            return Call("skill_manage", {"action": "patch", "name": name, **patch})
        case _:
            return Call("skill_manage", {"action": "delete", "name": name})


@dataclass
class Told:
    """What the household was told, by the message's number."""

    chance: random.Random
    notes: dict[int, str] = field(default_factory=dict)
    patches: dict[int, tuple[str, str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)

    def next(self, number: int) -> tuple[int, str]:
        """A message, and the conversation that it belongs to: what belongs to a skill is said in one."""
        if number % 4 == 0:
            if len(self.made) - len(self.gone) < SKILLS:
                self.made.append(f"skill-{number}")
                return self._of(self.made[-1]), f"make skill-{number}"
            skill = self.chance.choice([each for each in self.made if each not in self.gone])
            if self.chance.random() < 0.15:
                self.gone.add(skill)
                return self._of(skill), f"delete {skill}"
            self.patches[number] = (skill, f"step-{number}")
            return self._of(skill), f"patch {skill} step-{number}"
        self.notes[number] = f"note-{number}"
        return self.chance.randrange(SESSIONS), f"note note-{number}"

    def _of(self, skill: str) -> int:
        return SESSIONS + self.made.index(skill) % SESSIONS


@dataclass(kw_only=True)
class Seen:
    """What one home has in the end."""

    notes: list[str]
    writers: dict[str, Author]
    skills: dict[str, str]


async def seen(home: Home, url: str) -> Seen:
    """What a home has once it has caught up."""
    store = await open_store_of(home, StoreSettings(url=url, shared=True))
    notes = Notes(home=home, store=store, clock=SystemClock(), ids=RandomIds(), settings=MemorySettings())
    skills = Skills(home, SkillSettings(), SystemClock(), lambda: store)
    try:
        await notes.catch_up()
        await skills.catch_up()
        return Seen(
            notes=entries_of(decoded((home.memories / FILE).read_bytes())),
            writers=await notes.writers(FILE),
            skills={
                path.parent.name: path.read_text()
                for path in home.skills.rglob("SKILL.md")
                if not any(part.startswith(".") for part in path.relative_to(home.skills).parts)
            },
        )
    finally:
        await skills.close()
        await store.close()


def edit(home: Home, entry: str) -> str:
    """What a person does who adds a note with an editor that writes in place."""
    home.memories.mkdir(exist_ok=True)
    with (home.memories / FILE).open("a") as file:
        file.write(f"§\n{entry}\n")
    return entry


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_nothing_is_lost_and_nobody_is_named_who_did_not_do_it(
    tmp_path: Path, cluster: PostgresCluster, request: pytest.FixtureRequest
):
    full = request.config.getoption("--full", default=False)
    messages, kills = (500, 30) if full else (60, 5)
    chance, url = random.Random(7), cluster.fresh_url()
    told, by_hand = Told(chance), []
    async with AsyncExitStack() as closing:
        model = closing.enter_context(serving_in_thread(openai_model(obedient, keys=())))
        household = closing.enter_context(Household(tmp_path, url, model.url))
        store = await open_store(url)
        closing.push_async_callback(store.close)
        sessions = [await open_session(store, number, tmp_path) for number in range(2 * SESSIONS)]
        for number in range(messages):
            session, text = told.next(number)
            await say(store, sessions[session], text, number)
            if number == 0:  # one skill is made before a note is edited by hand, in whose sight skills wait
                await answered(store, PATIENCE)
            if number % (messages // kills) == messages // kills - 1:
                by_hand.append(edit(chance.choice(list(household.homes.values())), f"hand-{number}"))
                await asyncio.sleep(chance.uniform(0.5, 2.5))
                household.kill(chance.choice(list(household.processes)))
        ends = await answered(store, PATIENCE)
        household.end()
        twice = await once_more(dict(household.homes), url)
        authors = Counter(
            (each.change.author.value, each.change.action)
            for each in await store.versions.list(Kind.SKILL, limit=10_000)
        )
        # What is kept in sight of notes that were edited by hand waits for the owner.
        waiting = " ".join(each.call for each in await store.proposals.waiting())
    refused = {int(key[1:]): reason for key, (state, reason) in ends.items() if state != "answered"}
    north, south = twice.values()
    print(
        f"{messages} messages, {household.kills} kills, {len(by_hand)} edits by hand: {len(refused)} refused "
        f"{Counter(refused.values())}, {authors}"
    )

    assert sorted(north.notes) == sorted(south.notes)
    assert north.skills == south.skills
    assert max(Counter(north.notes).values()) == 1
    kept = {note for number, note in told.notes.items() if number not in refused and f'"{note}"' not in waiting}
    assert {*by_hand, *kept} <= set(north.notes)
    assert set(north.notes) <= {*by_hand, *told.notes.values()}
    assert {entry for entry, author in north.writers.items() if author is Author.FOUND} == set(by_hand)
    assert {author for author, _ in authors} == {"foreground"}
    if not refused:
        assert set(north.skills) <= set(told.made)
        for skill in told.made:
            assert (skill in north.skills) is (skill not in told.gone) or f'"{skill}"' in waiting
        for skill, step in told.patches.values():
            assert skill not in north.skills or f"{step}." in north.skills[skill] + waiting


async def once_more(homes: dict[str, Home], url: str) -> dict[str, Seen]:
    """What each home has when all of them have caught up with all."""
    for home in homes.values():
        await seen(home, url)
    return {name: await seen(home, url) for name, home in homes.items()}
