"""A thousand turns of one conversation, with everything that may change meanwhile: how much of what is sent a prefix
cache could serve, as the ledger predicts it and as a provider with such a cache counts it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from bench.figures import Figure
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.events import Compacted, Entry, MessageTaken, Outcome, PrefixFrozen, Replied, RunEnded
from hermes_agent.core.messages import Role, Text
from hermes_agent.core.shape import first_change, read_shape
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.store.breaks import Break
from hermes_agent.store.usage import UsageRow
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import place
from tests.learning.harness import is_review

TURNS = 1_000
CALLS = 3
"""Of each message: so many turns with a call, then a reply."""

STARTS = 5
"""The program is started so often; in between the person changes whatever goes into a prompt."""

WINDOW = 128_000
FILES = 40
REVIEWS, LONG = 12, 10_000
"""Of a conversation, and from how many tokens on it counts."""
STEP = 256
"""Tokens that a provider may miss because it caches in steps."""

PERCENT = 100.0
PLACE = Conversation(platform="cli", chat_kind="folder", chat="bench")
RECORD = "You keep the record"
SENTENCE = "the harbour is closed until the ice breaks and nobody knows when that will be this year"
WORDS = tuple(SENTENCE.split())


def prose(chance: Random, count: int) -> str:
    """So many words."""
    return " ".join(chance.choices(WORDS, k=count))


def answer(heard: Heard) -> list[Piece]:
    """Looks at files, takes a note now and then, and replies; a summary where one is asked for."""
    chance = Random(len(heard.messages))
    if RECORD in heard.system:
        return [Say(f"## Done\n{prose(chance, 300)}")]
    since = 0
    for message in reversed(heard.messages):
        if message.role is Role.USER:
            break
        since += message.role is Role.ASSISTANT
    if since >= CALLS:
        return [Say(prose(chance, 60))]
    if since == 0 and chance.random() < 0.1:
        return [Call("memory", {"target": "memory", "action": "add", "content": f"Berth {chance.random()} is free."})]
    return [Say(prose(chance, 10)), Call("read_file", {"path": f"part{chance.randrange(FILES)}.txt"})]


def meddle(home: Home, work: Path, chance: Random) -> None:
    """What a person may change between two starts: who the agent is, the project's rules, notes, skills, settings."""
    home.soul_file.write_text(f"I am somebody. {prose(chance, 20)}")
    (work / "AGENTS.md").write_text(f"Rules: {prose(chance, 30)}")
    home.memories.mkdir(exist_ok=True)
    (home.memories / "USER.md").write_text(f"Likes {prose(chance, 5)}.")
    skill = home.root / "skills" / f"s{chance.randrange(10**6)}"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: {skill.name}\ndescription: {prose(chance, 8)}\n---\n{prose(chance, 50)}"
    )


async def talk(runtime: System, session: str, chance: Random, runs: int) -> None:
    """So many messages, each answered; a quarter of them is followed by another one while the run is under way."""
    for _ in range(runs):
        after = await runtime.store.history.last_number(session)
        await say(runtime, session, prose(chance, 30))
        if chance.random() < 0.25:
            await say(runtime, session, prose(chance, 10))
        async with aclosing(runtime.hermes.follow(session, after)) as events:
            async for seen in events:
                assert not isinstance(seen.event, RunEnded) or seen.event.outcome is Outcome.ANSWERED, seen.event


async def say(runtime: System, session: str, words: str) -> None:
    """Hand a message in."""
    inbound = Inbound(
        source="bench",
        source_id=runtime.ids.short(),
        principal=runtime.owner,
        conversation=PLACE,
        parts=(Text(text=words),),
        received=runtime.clock.now(),
    )
    await runtime.hermes.submit(inbound, session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """What a conversation left: its log, the ledger's rows of its turns, the cache breaks that were noticed."""

    entries: Sequence[Entry]
    rows: Sequence[UsageRow]
    breaks: Sequence[Break]

    @property
    def compactions(self) -> int:
        """How often it was shortened."""
        return sum(isinstance(entry.event, Compacted) for entry in self.entries)

    @property
    def counted(self) -> float:
        """Percent of the tokens sent that the provider did not find in its cache."""
        return PERCENT * (1 - sum(row.usage.cached for row in self.rows) / sum(row.usage.input for row in self.rows))

    @property
    def predicted(self) -> float:
        """The same, as the hashes in the ledger foretell it."""
        served = sum(self._expected(before, after) for before, after in pairwise(self.rows))
        return PERCENT * (1 - served / sum(row.usage.input for row in self.rows))

    def unexplained(self) -> int:
        """Requests that found less than was foretold, and changes of the beginning that no compaction accounts for."""
        missed = sum(after.usage.cached + STEP < self._expected(before, after) for before, after in pairwise(self.rows))
        shortened = self._after_compaction()
        changed = {after.call_id for before, after in pairwise(self.rows) if not _extends(before, after)}
        return missed + len((changed | {each.call_id for each in self.breaks}) - shortened)

    def _expected(self, before: UsageRow, after: UsageRow) -> int:
        frozen = [entry.event for entry in self.entries if isinstance(entry.event, PrefixFrozen)]
        prefix = sum(section.tokens for section in frozen[-1].sections)
        return before.usage.input if _extends(before, after) else min(prefix - STEP, after.usage.input)

    def _after_compaction(self) -> set[str]:
        """The first request after each."""
        found, fresh = set(), False
        for entry in self.entries:
            match entry.event:
                case Compacted():
                    fresh = True
                case Replied(call_id=call) if fresh:
                    found.add(call)
                    fresh = False
                case _:
                    pass
        return found


def _extends(before: UsageRow, after: UsageRow) -> bool:
    old, new = read_shape(before.shape), read_shape(after.shape)
    assert old is not None
    assert new is not None
    return before.prefix == after.prefix and not first_change(old, new)


async def live(folder: Path, *, turns: int = TURNS, window: int = WINDOW) -> Lived:
    """A conversation of so many turns, on a home in this folder."""
    chance = Random(3)
    home, work = Home(root=folder / "home", base=folder / "home").ensure(), folder / "work"
    work.mkdir()
    for number in range(FILES):
        (work / f"part{number}.txt").write_text("\n".join(prose(chance, 12) for _ in range(15)))
    async with serving(openai_model(answer, keys=())) as server:
        home.config_file.write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n  window: {window}\n")
        lived = [await _start(home, work, chance, turns // (CALLS + 1) // STARTS) for _ in range(STARTS)]
    return lived[-1]


async def _start(home: Home, work: Path, chance: Random, runs: int) -> Lived:
    """One start of the program, and all of the conversation up to its end."""
    meddle(home, work, chance)
    async with open_system(home, Options(queue="bench")) as runtime:
        session = (await runtime.hermes.open_session(PLACE, runtime.owner, workspace=str(work))).id
        await talk(runtime, session, chance, runs)
        rows = await runtime.store.usage.rows(session)
        return Lived(
            entries=await runtime.store.history.entries(session),
            rows=[row for row in rows if row.purpose == "chat"],
            breaks=await runtime.store.breaks.since(0.0),
        )


def figures(lived: Lived) -> list[Figure]:
    """Share that is not served, by prediction and by count; and breaks without a cause."""
    said = sum(isinstance(entry.event, MessageTaken) for entry in lived.entries)
    name = f"{len(lived.rows):,} turns, {said} messages, {lived.compactions} compactions"
    return [
        Figure(name=f"{name}: not from the cache, predicted", value=lived.predicted, unit="%", limit=3.0),
        Figure(name=f"{name}: as the provider counts", value=lived.counted, unit="%", limit=3.0),
        Figure(name=f"{name}: unexplained breaks", value=lived.unexplained(), unit="", limit=0.0),
    ]


def reviewing(heard: Heard) -> list[Piece]:
    """Talks at length and looks for skills; in a review notes one thing and says so."""
    chance = Random(len(heard.messages))
    if heard.last.role is Role.USER:
        note = {"target": "memory", "action": "add", "content": f"{prose(chance, 12)}."}
        return [Call("memory", note)] if is_review(heard) else [Say(prose(chance, 40)), Call("skills_list", {})]
    return [Say(prose(chance, 20 if is_review(heard) else 120))]


async def review_shares(folder: Path) -> list[tuple[int, float]]:
    """Of each review of a growing conversation in which nothing is from outside: the tokens of its first request, and
    the percentage of all its input that the provider had not in its cache."""
    chance, found = Random(7), []
    more = "  window: 128000\nmemory:\n  nudge_interval: 1\n"
    async with place(folder, reviewing, Options(reviews=False), more=more) as here:
        for _ in range(REVIEWS):
            await here.say(prose(chance, 800))
            await here.runtime.learner.run()
        rows = [row for row in await here.runtime.store.usage.rows(here.record.id) if row.purpose == "review"]
    for run in dict.fromkeys(row.run for row in rows):
        used = [row.usage for row in rows if row.run == run]
        share = PERCENT * (1 - sum(each.cached for each in used) / sum(each.input for each in used))
        found.append((used[0].input, share))
    return found


def review_figures(shares: Sequence[tuple[int, float]]) -> list[Figure]:
    """The worst of the reviews of a conversation that is no longer short."""
    long = [(size, share) for size, share in shares if size >= LONG]
    name = f"{len(long)} reviews of {long[0][0]:,} to {long[-1][0]:,} tokens: not from the cache, the worst"
    return [Figure(name=name, value=max(share for _, share in long), unit="%", limit=5.0)]


def measure() -> list[Figure]:
    """In a temporary folder, with a window of 128,000 tokens."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        shares = asyncio.run(review_shares(Path(other)))
        return [*figures(asyncio.run(live(Path(folder)))), *review_figures(shares)]
