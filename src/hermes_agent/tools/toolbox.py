"""Toolbox of one agent: which tools the prompt lists, and search (BM25) for the others."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import UnknownTool
from hermes_agent.core.messages import Origin, ToolSchema
from hermes_agent.core.records import with_texts
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Tool
from hermes_agent.tools.schema import said

KEEPS = frozenset((Capability.MEMORY, Capability.SKILLS, Capability.SCHEDULE, Capability.MESSAGE))
NAME_WEIGHT = 3
K1, B = 1.2, 0.75  # the usual constants of BM25 (Robertson & Zaragoza 2009)
_STOP = frozenset(
    re.findall(r"\w+", "a an and any as at by can for from i in into is it me my of on or the to what with you")
)
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ers", "ed", "er", "es", "s", "e", "y")
_SHORTEST_STEM = 3


class ToolIndex:
    """Finds tools by words (BM25). What it needs of each tool is computed once."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        pages = [_page(tool) for tool in tools]
        self._sizes = [page.total() for page in pages]
        self._average = sum(self._sizes) / max(1, len(pages))
        self._found: dict[str, list[tuple[int, int]]] = {}
        for index, page in enumerate(pages):
            for stem, often in page.items():
                self._found.setdefault(stem, []).append((index, often))

    def find(self, query: str) -> list[Tool]:
        """Tools that share a word with the query, best match first."""
        scores: dict[int, float] = {}
        for stem in dict.fromkeys(_stems(query)):
            places = self._found.get(stem, ())
            rarity = math.log(1 + (len(self._tools) - len(places) + 0.5) / (len(places) + 0.5))
            for index, often in places:
                share = often * (K1 + 1) / (often + K1 * (1 - B + B * self._sizes[index] / self._average))
                scores[index] = scores.get(index, 0.0) + rarity * share
        return [self._tools[index] for index in sorted(scores, key=lambda index: (-scores[index], index))]


def ranked(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """Tools that share a word with the query, best match first (BM25)."""
    return ToolIndex(tools).find(query)


def _page(tool: Tool) -> Counter[str]:
    schema = tool.schema
    page = Counter(_stems(schema.description))
    for stem in _stems(schema.name):
        page[stem] += NAME_WEIGHT
    page.update(stem for name in schema.parameters.get("properties", {}) for stem in _stems(name))
    return page


def _stems(text: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return [_stem(word) for word in re.findall(r"[^\W_]+", spaced.lower()) if word not in _STOP]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


FIND, USE = "find_tools", "use_tool"
FOUND_AT_ONCE = 5
MOST_NAMED = 20
"""Tools that come and go which the tail names one by one; of more it counts those of each server."""
MENTIONS = "${secret:"
SHOWN = ("name", "description", "parameters")


ALWAYS = frozenset({"read_file", "write_file", "patch", "search_files", "terminal", "clarify"})
"""What a small prompt shows."""


class Toolbox:
    """The tools of one agent by name, in a fixed order.

    - `offered`: what the prompt lists: the core tools and, if there are others, `find_tools` and `use_tool`;
    - `resolve`: the tool that a call really means, so that permission, journal and guardrails never see `use_tool`;
    - `opened` wraps a tool whose arguments name secrets;
    - `redact` removes secrets from what a tool keeps or sends as words: notes, skills, schedules, messages;
    - `small`: the prompt lists only the most needed tools, and the rest are found by search;
    - `found` gives the dynamic tools as they are now: always found by search, never in `offered`; `look` is awaited
      before a search, with the workspace.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        opened: Callable[[Tool], Tool] | None = None,
        *,
        redact: Callable[[str], str] | None = None,
        small: bool = False,
        found: Callable[[], Sequence[Tool]] | None = None,
        look: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._opened = opened
        self._redact = redact
        self._small = small
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self._tools.setdefault(tool.schema.name, tool)
        self._deferred = tuple(tool for tool in self._tools.values() if not self._is_shown(tool))
        self._found = found
        self.look = look if found else None
        self._now: tuple[Sequence[Tool], dict[str, Tool]] | None = None
        self._index: tuple[Sequence[Tool], ToolIndex] | None = None
        self._doors: dict[str, Tool] = {FIND: _FindTools(self), USE: _UseTool(self)}

    @cached_property
    def offered(self) -> tuple[ToolSchema, ...]:
        """The tools listed in the prompt, in a fixed order."""
        core = [tool.schema for tool in self._tools.values() if self._is_shown(tool)]
        doors = [door.schema for door in self._doors.values()] if self._deferred or self._found else []
        return (*core, *doors)

    def _is_shown(self, tool: Tool) -> bool:
        return getattr(tool, "core", True) and (not self._small or tool.schema.name in ALWAYS)

    @property
    def passing(self) -> dict[str, Tool]:
        """The current dynamic tools by name, except those whose name is taken."""
        found = self._found() if self._found else ()
        if self._now is None or self._now[0] is not found:
            taken = self._tools.keys() | self._doors.keys()
            self._now = found, {name: each for each in reversed(found) if (name := each.schema.name) not in taken}
        return self._now[1]

    def find(self, query: str) -> list[Tool]:
        """The tools that are not listed and match these words, the best first."""
        passing = self.passing
        key = self._now[0] if self._now else ()
        if self._index is None or self._index[0] is not key:
            self._index = key, ToolIndex((*self._deferred, *passing.values()))
        return self._index[1].find(query)

    @property
    def names(self) -> tuple[str, ...]:
        """All callable tools, listed in the prompt or not."""
        return (*self._tools, *self._doors, *self.passing)

    @property
    def deferred(self) -> tuple[Tool, ...]:
        """The tools found with `find_tools`."""
        return (*self._deferred, *self.passing.values())

    def get(self, name: str) -> Tool:
        """The tool of this name. Raises `UnknownTool` with a suggestion."""
        found = self._tools.get(name) or self._doors.get(name) or self.passing.get(name)
        if found is not None:
            return found
        near = get_close_matches(name.lower(), self.names, 1, 0.5)
        hint = f"Did you mean `{near[0]}`?" if near else f"There are: {', '.join(self.names)}."
        raise UnknownTool(f"There is no tool `{name[:80]}`.", hint=hint)

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
        """The tool and arguments that a call means: those inside `use_tool`, otherwise the call's own."""
        if name != USE:
            tool = self.get(name)
            if self._redact is not None and not tool.needs.isdisjoint(KEEPS):
                arguments = with_texts(arguments, self._redact)
            opens = self._opened is not None and MENTIONS in repr(arguments)
            return (self._opened(tool) if self._opened and opens else tool), arguments
        inner = arguments.get("arguments")
        if isinstance(inner, str):
            inner = _json_object(inner)
        inside = str(arguments.get("name", ""))
        return self.resolve("" if inside == USE else inside, inner if isinstance(inner, Mapping) else {})


@dataclass(frozen=True, slots=True)
class _FindTools:
    box: Toolbox
    schema = ToolSchema(
        name=FIND,
        description="Find more tools by what they do. Answers with their names and parameters for use_tool.",
        parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    )
    needs: frozenset[Capability] = frozenset()

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:  # noqa: ARG002 - the Protocol's shape
        return CallFacts(
            effect=Effect.READS,
            paths=(),
            summary=f"{FIND}: {str(arguments.get('query', ''))[:80]}",
            origin=Origin.RUNTIME,
        )

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        if self.box.look is not None:
            await self.box.look(context.workspace)
        found = self.box.find(str(arguments.get("query", "")))[:FOUND_AT_ONCE]
        if not found:
            return said("No tool matches. Try other words.", Origin.RUNTIME)
        shown = [{key: getattr(tool.schema, key) for key in SHOWN} for tool in found]
        lines = [msgspec.json.encode(each).decode() for each in shown]
        # Tools that come and go are described by strangers.
        foreign = any(tool.schema.name in self.box.passing for tool in found)
        return said("\n".join(lines), Origin.TOOL if foreign else Origin.RUNTIME)


@dataclass(frozen=True, slots=True)
class _UseTool:
    box: Toolbox
    schema = ToolSchema(
        name=USE,
        description="Call a tool that find_tools showed.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name"],
        },
    )

    @property
    def needs(self) -> frozenset[Capability]:
        """The needs of all deferred tools, so that a caller that does not `resolve` refuses too much, never too
        little."""
        return frozenset(need for tool in self.box.deferred for need in tool.needs)

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:
        tool, inner = self.box.resolve(USE, arguments)
        return tool.facts(inner, workspace)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        tool, inner = self.box.resolve(USE, arguments)
        return await tool.run(inner, context)


class PassingTools:
    """Prompt tail source (`agent.tail.TailSource`) that lists tools which come and go, and `news` of who has them,
    beside each message."""

    name = "Tools that come and go"
    origin = Origin.TOOL

    def __init__(self, box: Toolbox, news: Callable[[str], str]) -> None:
        self._box, self._news = box, news

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  the same whatever was said
        """Their names; empty if there are none."""
        names = ", ".join(_grouped(self._box.passing))
        if not names:
            return ""
        said = f"Now there are these; {FIND} shows what they do and take, {USE} calls them: {names}."
        return f"{said}\n{self._news(session)}".strip()


def _grouped(names: Iterable[str]) -> list[str]:
    """The names in order; of many, those that begin alike (`mcp__server__`) are counted as one."""
    ordered = sorted(names)
    if len(ordered) <= MOST_NAMED:
        return ordered
    begins = Counter(name[: name.rfind("__") + 2] if "__" in name else name for name in ordered)
    whole = [f"{begin}* ({count})" if begin.endswith("__") else begin for begin, count in begins.items()]
    return whole if len(whole) <= MOST_NAMED else [*whole[:MOST_NAMED], f"{len(whole) - MOST_NAMED} more such groups"]


def _json_object(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
