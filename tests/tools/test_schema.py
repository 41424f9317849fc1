"""A function becomes a tool: its schema, the check of its arguments, and the facts of a call."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments
from hermes_agent.core.tool import CallContext, Tool, tool
from hermes_agent.tools.schema import Unusable, collect, from_function
from tests.tools.bench import Context, words


@dataclass
class Stop:
    name: str
    minutes: int = 0


class Trains:
    @tool(effect=Effect.WRITES, needs=(Capability.NET,), paths=("into",), reads_when="look")
    async def plan(
        self,
        stops: list[Stop],
        context: CallContext,
        into: str = "plan.txt",
        speed: Annotated[int, Meta(ge=1, le=300)] = 80,
        look: bool = False,
        mode: Literal["fast", "cheap"] = "fast",
        tags: list[str] = [],  # noqa: B006 - a schema's default
    ) -> str:
        """Plan a journey.

        Args:
            speed: in km/h,
                on average
        """
        return f"{[stop.name for stop in stops]} {speed} {tags} {context.key}"

    @tool(effect=Effect.READS, reads_when="", core=False)
    async def clock(self) -> str:
        """Tell the time."""
        return "noon"

    async def not_a_tool(self) -> None: ...


def plan() -> Tool:
    tools, _ = collect([Trains()])
    return tools[0]


def test_the_signature_and_docstring_are_the_schema() -> None:
    schema = plan().schema

    assert (schema.name, schema.description) == ("plan", "Plan a journey.")
    assert schema.parameters == {
        "type": "object",
        "properties": {
            "stops": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "minutes": {"type": "integer", "default": 0}},
                    "required": ["name"],
                },
            },
            "into": {"type": "string", "default": "plan.txt"},
            "speed": {
                "type": "integer",
                "minimum": 1,
                "maximum": 300,
                "description": "in km/h, on average",
                "default": 80,
            },
            "look": {"type": "boolean"},
            "mode": {"type": "string", "enum": ["cheap", "fast"], "default": "fast"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["stops"],
    }


async def test_arguments_reach_the_method_as_the_types_it_names(tmp_path: Path) -> None:
    answer = await plan().run({"stops": [{"name": "Ulm"}]}, Context(str(tmp_path)))

    assert words(answer) == "['Ulm'] 80 [] 20260101_000000_abcdef-call_1"


@pytest.mark.parametrize(
    ("slip", "heard"),
    [
        ({"speed": "120"}, "['Ulm'] 120 []"),
        ({"stops": '[{"name": "Ulm"}]'}, "['Ulm'] 80 []"),
        ({"tags": '["a", "b"]'}, "['Ulm'] 80 ['a', 'b']"),
        ({"speed": None}, "['Ulm'] 80 []"),
        ({"look": "true"}, "['Ulm'] 80 []"),
        ({"into": 7}, "['Ulm'] 80 []"),
    ],
)
async def test_what_models_often_get_wrong_is_mended(slip: dict[str, Any], heard: str, tmp_path: Path) -> None:
    answer = await plan().run({"stops": [{"name": "Ulm"}], **slip}, Context(str(tmp_path)))

    assert words(answer).startswith(heard)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"stops": [{"name": 3}]}, "`$.stops[0].name`"),
        ({"stops": [], "speed": 0}, "`$.speed`"),
        ({"stops": [], "mode": "slow"}, "`$.mode`"),
        ({"stops": "Ulm"}, "`$.stops`"),
        ({}, "`stops` - at `$`"),
        ({"stops": [], "sped": 3}, "`sped` - at `$`"),
    ],
)
def test_arguments_that_do_not_fit_are_answered_with_the_schema_path(arguments: dict[str, Any], path: str) -> None:
    with pytest.raises(BadArguments) as caught:
        plan().facts(arguments, "/w")

    assert path in str(caught.value)


def test_a_mistyped_parameter_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(BadArguments) as caught:
        plan().facts({"stops": [], "sped": 3}, "/w")

    assert "Did you mean `speed`?" in caught.value.hint


def test_facts_hold_absolute_paths_with_links_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    facts = plan().facts({"stops": [], "into": "link/../link/a.txt"}, str(tmp_path))

    assert facts.paths == (str(tmp_path.resolve() / "real" / "a.txt"),)
    assert facts.effect is Effect.WRITES


def test_a_declared_parameter_turns_a_call_into_a_read() -> None:
    assert plan().facts({"stops": [], "look": True}, "/w").effect is Effect.READS


def test_values_of_a_parameter_can_turn_a_call_into_a_read() -> None:
    class Door:
        @tool(effect=Effect.WRITES, reads_when="action=look|listen")
        async def door(self, action: str) -> str:
            """Mind a door."""
            return action

    (door,), _ = collect([Door()])

    assert door.facts({"action": "listen"}, "/w").effect is Effect.READS
    assert door.facts({"action": "open"}, "/w").effect is Effect.WRITES


def test_only_marked_methods_are_tools_in_the_order_they_are_written() -> None:
    tools, aside = collect([Trains()])

    assert [found.schema.name for found in tools] == ["plan", "clock"]
    assert aside == ()


def test_a_tool_without_a_possible_schema_is_set_aside_and_the_others_stay() -> None:
    class Odd:
        @tool(effect=Effect.READS)
        async def broken(self, thing: threading.Lock) -> str:  # type: ignore[valid-type] - a type that is none
            """No JSON holds a lock."""
            return str(thing)

        @tool(effect=Effect.READS)
        async def sound(self) -> str:
            """Fine."""
            return "fine"

    tools, aside = collect([Odd()])

    assert [found.schema.name for found in tools] == ["sound"]
    assert aside[0].name == "broken"
    assert aside[0].reason


def test_a_docstring_that_describes_what_is_not_taken_is_noticed() -> None:
    def fetch(url: str) -> str:
        """Fetch.

        Args:
            address: where
        """
        return url

    with pytest.raises(Unusable, match="address"):
        from_function("fetch", fetch)


async def test_a_plain_function_runs_in_a_thread(tmp_path: Path) -> None:
    def where(n: int) -> dict[str, Any]:
        return {"n": n, "main": threading.current_thread() is threading.main_thread()}

    made = from_function("where", where, "Where am I?", ["network"])
    answer = await made.run({"n": "4"}, Context(str(tmp_path)))

    assert words(answer) == '{"n":4,"main":false}'
    assert made.needs == {Capability.NET}
    assert made.schema.description == "Where am I?"


async def test_plain_functions_that_last_take_no_place_in_the_pool_and_a_stop_does_not_wait(tmp_path: Path) -> None:
    begun, ends = threading.Semaphore(0), threading.Event()

    def slow() -> str:
        begun.release()
        ends.wait(60)
        return "late"

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    made = from_function("slow", slow, "Slow")
    running = [asyncio.create_task(made.run({}, Context(str(tmp_path)))) for _ in range(3)]
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
        for _ in running:
            await asyncio.to_thread(begun.acquire)
        for task in running:
            task.cancel()
        await asyncio.wait(running)
    ends.set()


async def test_an_async_function_and_one_without_annotations_are_tools_too(tmp_path: Path) -> None:
    async def echo(thing):  # type: ignore[no-untyped-def] - what is tested
        return thing

    answer = await from_function("echo", echo, "Echo").run({"thing": [1, "a"]}, Context(str(tmp_path)))

    assert words(answer) == '[1,"a"]'


def test_an_unknown_capability_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Unusable, match=r"fs\.read"):
        from_function("f", lambda: "", "f", ["teleport"])
