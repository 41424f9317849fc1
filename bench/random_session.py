"""One random session, recorded against a model server on loopback: parallel calls, failures, retries, steering; and
what a database holds, for comparing it with that of a replay."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from pathlib import Path

import apsw  # reads what the program wrote, without the program

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.replay import Played, played
from hermes_agent.app.system import System
from hermes_agent.core.chat import Busy, Conversation, Inbound
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import ToolError
from hermes_agent.core.events import ToolStarted
from hermes_agent.core.messages import Text, TextDelta
from hermes_agent.core.tool import Tool
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Piece, Say, Think
from hermes_agent.replay.cassette import read_cassette
from hermes_agent.replay.recorder import Recorder
from hermes_agent.replay.replayer import Replay, player_of
from hermes_agent.testing.faults import Reset, Status
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.testing.scripted import Step, Tries
from hermes_agent.tools.schema import from_function

PLACE = Conversation(platform="bench")
TAPE = "tape.jsonl"
MOST_TURNS = 1000
MESSAGES = ("Go on.", "Now the other one.", "Почему?", "什么时候种番茄 🍅", "Once more, please.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a random session may look: messages, turns of each run at most (with `steady`: just so many), the seconds of
    model and tools, and whether somebody stops runs."""

    messages: int = 3
    turns: int = 5
    pace: Pace = field(default_factory=Pace)
    tool_seconds: float = 0.002
    faults: bool = True
    stops: bool = False
    steady: bool = False


def tools_for(chance: random.Random, shape: Shape) -> list[Tool]:
    """Tools that look, write, fail and break, each after a while."""

    async def wait() -> None:
        await asyncio.sleep(chance.random() * shape.tool_seconds)

    async def look(place: str) -> str:
        await wait()
        return f"{place}: {chance.random()}"

    async def change(place: str) -> str:
        await wait()
        return f"changed {place} to {chance.random()}"

    async def refuse(place: str) -> str:
        await wait()
        raise ToolError(f"{place} cannot be done.", hint="Try another.")

    async def broken(place: str) -> str:
        await wait()
        raise ValueError(place)

    effects = {look: Effect.READS, change: Effect.KEYED, refuse: Effect.WRITES, broken: Effect.READS}
    return [from_function(each.__name__, each, "For the bench.", (), effect=effect) for each, effect in effects.items()]


def script_for(seed: int, shape: Shape) -> object:
    """What the model says: by the seed and by what it heard, so that a question asked again is answered the same."""

    def step(heard: Heard) -> Step:
        chance = random.Random(f"{seed}/{len(heard.messages)}")
        said = sum(1 for _ in _since_the_person(heard))
        pieces: list[Piece] = []
        if chance.random() < 0.3:
            pieces.append(Think(text=f"Let me see {chance.random()}."))
        pieces.append(Say(text=" ".join(chance.choices(("so", "well", "über", "好", "then"), k=chance.randint(1, 20)))))
        if said < (shape.turns - 1 if shape.steady else chance.randint(0, shape.turns)):
            names = ("look", "change", "refuse", "broken", "nonesuch")
            pieces += [_call(chance, names) for _ in range(chance.randint(1, 4))]
            if chance.random() < 0.1:
                pieces.append(Call("look", raw="{broken"))
        answer = Answer(pieces=tuple(pieces), pace=shape.pace)
        if shape.faults and chance.random() < 0.15:
            fault = chance.choice((Status(429, headers={"retry-after": "0"}), Reset(after=2)))
            return Tries((fault, answer))
        return answer

    return step


def _call(chance: random.Random, names: Sequence[str]) -> Call:
    return Call(chance.choice(names), {"place": f"p{chance.randint(0, 3)}"})


def _since_the_person(heard: Heard) -> list[object]:
    found: list[object] = []
    for message in reversed(heard.messages):
        if message.role == "user":
            break
        if message.role == "assistant":
            found.append(message)
    return found


async def record(folder: Path, seed: int, shape: Shape | None = None) -> None:
    """Record a session into `folder/tape.jsonl`, its database in `folder/home`."""
    shape, chance = shape or Shape(), random.Random(seed)
    home = Home(root=folder / "home", base=folder / "home").ensure()
    recorder = Recorder(folder / TAPE, SystemClock())
    script = script_for(seed, shape)
    async with serving(openai_model(script, keys=())) as server:  # type: ignore[arg-type]  # a function of what was heard
        settings = f"model:\n  default: custom/m\n  base_url: {server.url}\nagent:\n  max_turns: {MOST_TURNS}\n"
        home.config_file.write_text(settings)
        options = Options(queue="bench", extra_tools=tuple(tools_for(chance, shape)), toolsets=(), tape=recorder)
        async with open_system(home, options) as runtime:
            await _talk(runtime, folder, chance, shape)


async def _talk(runtime: System, folder: Path, chance: random.Random, shape: Shape) -> None:
    session = (await runtime.hermes.open_session(PLACE, runtime.owner, workspace=str(folder), new=True)).id
    for number in range(chance.randint(1, shape.messages) if shape.faults else shape.messages):
        after = await runtime.store.history.last_number(session)
        await runtime.hermes.submit(_inbound(runtime, chance, number), session)
        async with asyncio.TaskGroup() as group:
            if shape.faults and chance.random() < 0.3:
                group.create_task(_disturb(runtime, session, chance, number, shape))
            group.create_task(_ended(runtime, session, after))
    for _ in range(1000):
        if not await runtime.hermes.resume(session):
            return
        await asyncio.sleep(0.005)


async def _ended(runtime: System, session: str, after: int) -> None:
    async with aclosing(runtime.hermes.follow(session, after)) as events:
        async for _ in events:
            pass


async def _disturb(runtime: System, session: str, chance: random.Random, number: int, shape: Shape) -> None:
    """In the middle of a run: another message, one that interrupts, or a stop, at any moment or where the model speaks
    or a tool works."""
    if not shape.stops or chance.random() < 0.5:
        await asyncio.sleep(chance.random() * 0.03)
        if runtime.hermes.runs(session):
            await runtime.hermes.submit(_inbound(runtime, chance, number, Busy.STEER), session)
        return
    match chance.choice(("stop", "interrupt", TextDelta, ToolStarted)):
        case "stop":
            await asyncio.sleep(chance.random() * 0.03)
            runtime.hermes.stop_now(session, "the bench says so")
        case "interrupt":
            await asyncio.sleep(chance.random() * 0.03)
            await runtime.hermes.submit(_inbound(runtime, chance, number, Busy.INTERRUPT), session)
        case wanted:
            await _stop_at(runtime, session, wanted)


async def _stop_at(runtime: System, session: str, wanted: type[object]) -> None:
    after = await runtime.store.history.last_number(session)
    async with aclosing(runtime.hermes.follow(session, after)) as events:
        async for seen in events:
            if isinstance(seen.event, wanted):
                runtime.hermes.stop_now(session, "the bench says so")
                return


def _inbound(runtime: System, chance: random.Random, number: int, busy: Busy = Busy.STEER) -> Inbound:
    return Inbound(
        source="bench",
        source_id=runtime.ids.short(),
        principal=runtime.owner,
        conversation=PLACE,
        parts=(Text(text=f"{number}: {chance.choice(MESSAGES)}"),),
        received=runtime.clock.now(),
        busy=busy,
    )


async def replay(folder: Path, into: str = "fresh") -> Sequence[Played]:
    """Play `folder/tape.jsonl` in a home of its own."""
    home = Home(root=folder / into, base=folder / into).ensure()
    how = Replay(driven=True, database=str(home.database))
    async with played(home, player_of(read_cassette(folder / TAPE), how)) as sessions:
        return sessions


PLAYED = {"effect": "session, call_id, tool, effect, key, summary, state, handle, at", "machine": "id, boot"}
"""What of a table is played again, where that is not all of it: a replay records no command anywhere, and when a
machine was seen is by its own clock."""


def dump(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, in order."""
    with closing(apsw.Connection(str(database))) as connection:
        names = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: list(connection.execute(f"SELECT {PLAYED.get(name, '*')} FROM {name}")) for name in sorted(names)}


def differences(folder: Path, into: str = "fresh", file: str = "hermes.db") -> list[str]:
    """What differs between the database of the recorded run and that of the replay, row by row."""
    then, now = dump(folder / "home" / file), dump(folder / into / file)
    found = [
        f"{name}: {len(then[name])} rows, then {len(now.get(name, ()))}"
        for name in then
        if len(then[name]) != len(now.get(name, ()))
    ]
    for name, rows in then.items():
        found += [f"{name}: {a}\n  {b}" for a, b in zip(rows, now.get(name, ()), strict=False) if a != b]
    return found
