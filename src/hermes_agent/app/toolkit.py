"""Tools of a process: joins all tool sources, builds each surface's toolbox, and the hooks around tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Hook, Proposed
from hermes_agent.app.chats.people import People
from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.process import APPROVALS, Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Reserved, Skills
from hermes_agent.app.tool_sources import EditorServers, Toolsets, ToolSource
from hermes_agent.core.chat import Standing, Standings
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.tool import Answer, Quarantined, Tool
from hermes_agent.host.http import Http
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import Home, environment, own_source
from hermes_agent.host.secrets import Secrets, open_secrets
from hermes_agent.sandbox.place import Place, lazy_place
from hermes_agent.store.database import Store
from hermes_agent.tools.files.buffers import Buffers
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.permission.remembered import wrong_with
from hermes_agent.tools.permission.requests import Ask, Policy
from hermes_agent.tools.permission.unasked import Standpoint, Unasked
from hermes_agent.tools.starting import LENT_IN
from hermes_agent.tools.surfaces import capabilities_of, granted_to, standing_here
from hermes_agent.tools.todo import Todos
from hermes_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.manifest import BuiltIn

SOURCES: Mapping[str, str] = {
    "built-in": "hermes_agent.app.manifest:BuiltIn",
    "own": "hermes_agent.app.process:own_tools",
    "memory": "hermes_agent.app.tool_sources:memory_tools",
    "mcp": "hermes_agent.app.mcp.offered:mcp_tools",
}
"""Each by what makes it of the needs of a process, in the order in which prompts name their tools."""
HOOKS = (
    "hermes_agent.app.guards:spill_hook",
    "hermes_agent.app.guards:subfolder_context_hook",
    "hermes_agent.app.guards:guardrail_hook",
    "hermes_agent.app.guards:permission_hook",
    "hermes_agent.app.learning.work:learning_hook",
    "hermes_agent.app.guards:checkpoint_hook",
)
"""What stands around every call, in its order: each is made of the needs when the first call comes."""
POLICY = "hermes_agent.app.guards:permission_of"
PERMISSION, LEARNING, CHECKPOINTS = HOOKS[3:]
MCP_TOOLS = "hermes_agent.app.mcp.source:McpTools"
LEARNS = frozenset({"memory", "skill_manage"})
CAPABILITY = "hermes_agent.tools.schema:capability_of"
OPENED = "hermes_agent.tools.handles:OpenHandles"
PLACE = "hermes_agent.app.places:make_place"
WALLS = "hermes_agent.app.places:walls"
SKILLS_PLACE = "hermes_agent.app.places:skills_place"

CLI = "cli"
SMALL_WINDOW = 16_384
"""Tokens of a window below which a prompt shows only what nearly every piece of work needs."""


def needs_of(home: Home, settings: Settings, values: Mapping[type, object]) -> Needs:
    """Dependency container for tools: the home, each settings section, these values, and the execution place."""

    def place_by(maker: str, **more: object) -> Place:
        return lazy_place(settings.terminal.place, lambda: late(maker)(home, settings.terminal, environment(), **more))

    sections = (getattr(settings, field.name) for field in fields(settings))
    place, todos = place_by(PLACE, blocked=settings.web.blocked), Todos(home.cache / "todo")
    needs = Needs({**{type(each): each for each in sections}, Home: home, Settings: settings, **values})
    guard = Guard(
        home=home.root,
        person=Path.home(),
        walls=cache(lambda: late(WALLS)(home, settings.terminal, environment())),
        walled=settings.terminal.jail != "none",
        source=None if settings.approvals.own_source else own_source(),
        folders=needs.get(Buffers).folders,
    )
    needs.put(Guard, guard)
    inline = place if settings.terminal.place != "local" else place_by(SKILLS_PLACE)
    reserved, store = needs.get(Reserved), needs.later(Store)
    needs.put(Skills, Skills(home, settings.skills, needs.get(Clock), store, inline, reserved))
    needs.put(Place, place)
    needs.put(Todos, todos)
    needs.put(Policy, Policy(lambda request: needs.made(POLICY).decide(request)))
    return needs


def needs_without_store(home: Home, settings: Settings, values: Mapping[type, object] | None = None) -> Needs:
    """The same container for a process without runs, with defaults; `values` override them."""
    clock = SystemClock()
    usual: dict[type, object] = {
        Buffers: Buffers(),
        Clock: clock,
        EditorServers: EditorServers(),
        Http: Http(),
        Options: Options(),
        People: People({}),
        Reserved: Reserved(),
        Secrets: open_secrets(home),
        Standings: Standings(standing_here),
        TrustedFolders: TrustedFolders(home, clock),
        Unasked: Unasked(),
    }
    return needs_of(home, settings, {**usual, **(values or {})})


class Toolkit:
    """Builds toolboxes and tool-call hooks, out of all tool sources and one reading of the settings. Raises
    `ConfigError` if the settings name an unknown toolset."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._settings, self._options = needs.get(Settings), needs.get(Options)
        self.skills = needs.get(Skills)
        self.built_in: BuiltIn = needs.made(SOURCES["built-in"])
        self.built_in.toolsets(CLI)  # Raises before anything is open.
        needs.put(Toolsets, self.built_in)
        made = map(needs.made, SOURCES.values())
        self.sources: tuple[ToolSource, ...] = (*made, *(make(needs) for make in self._options.tool_sources))
        self._fixed = [each for each in self.sources if not each.dynamic]
        self._dynamic = [each for each in self.sources if each.dynamic]
        self._boxes: dict[tuple[str, bool, tuple[str, ...], str], Toolbox] = {}
        self._found: dict[tuple[str, tuple[str, ...], str], tuple[Tool, ...]] = {}
        self._of_sessions: dict[str, ToolSource] = {}
        self._editors = needs.get(EditorServers)
        self._editors.drops.append(self._drop)
        self._grants: dict[tuple[str, Standing], frozenset[Capability]] = {}
        for source in self._dynamic:
            source.subscribe(self._found.clear)

    def granted_to(self, surface: str, principal: str) -> frozenset[Capability]:
        """Capabilities of a principal (by key) on a surface."""
        found = self._grants.get((surface, standing := self._needs.get(Standings).of(principal)))
        if found is None:
            found = capabilities_of(surface, standing, self.built_in.table, self._settings.tools)
            self._grants[surface, standing] = found
        return found

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """The tools that are not offered, with the reason."""
        return tuple(chain.from_iterable(source.quarantined for source in self.sources))

    def toolbox(self, surface: str, window: int = 0, narrowed: tuple[str, ...] = (), session: str = "") -> Toolbox:
        """The tools of a surface, restricted to the toolsets `narrowed`; others cannot be called there. In a small
        window (tokens; 0: unknown) fewer are listed, and the rest are found by search. A `session` to which an editor
        gave MCP servers has theirs too."""
        session = session if self._editors.of(session) else ""
        key = surface, 0 < window < SMALL_WINDOW, narrowed, session
        if key not in self._boxes:
            tools = chain.from_iterable(source.tools(surface, narrowed) for source in self._fixed)
            self._boxes[key] = Toolbox(
                tools,
                self._opened,
                redact=self._needs.get(Secrets).redact,
                small=key[1],
                found=partial(self._tools_now, surface, narrowed, session) if self._passing(session) else None,
                look=partial(self._look, session),
            )
        return self._boxes[key]

    def _passing(self, session: str) -> list[ToolSource]:
        """The dynamic sources, that of the session first."""
        if session not in self._of_sessions:
            if not (servers := self._editors.of(session)):
                return self._dynamic
            source: ToolSource = late(MCP_TOOLS)(self._needs, servers)
            source.subscribe(self._found.clear)
            self._of_sessions[session] = source
        return [self._of_sessions[session], *self._dynamic]

    def _tools_now(self, surface: str, narrowed: tuple[str, ...], session: str) -> tuple[Tool, ...]:
        """Tools of the dynamic sources, cached until the next change."""
        if (surface, narrowed, session) not in self._found:
            tools = chain.from_iterable(source.tools(surface, narrowed) for source in self._passing(session))
            self._found[surface, narrowed, session] = tuple(tools)
        return self._found[surface, narrowed, session]

    async def ready(self, session: str = "") -> None:
        """Await the dynamic sources, before a run."""
        for source in self._passing(session):
            await source.ready()

    def news(self, session: str) -> str:
        """What else changed of the dynamic sources, for the next message."""
        return "\n".join(filter(None, (source.news(session) for source in self._passing(session))))

    async def _look(self, session: str, workspace: str) -> None:
        for source in self._passing(session):
            await source.look(workspace)

    async def _drop(self, session: str) -> None:
        """Close what an editor gave to the session."""
        if source := self._of_sessions.pop(session, None):
            self._boxes = {key: box for key, box in self._boxes.items() if key[3] != session}
            self._found.clear()
            await source.close()

    def _opened(self, tool: Tool) -> Tool:
        """The tool with secret handles in its arguments resolved."""
        lent = self._needs.get(Home).cache / LENT_IN
        opened: Tool = late(OPENED)(tool, self._needs.get(Secrets).get, self._settings.secrets, lent)
        return opened

    def hooks(
        self,
        granted: Sequence[str] | None,
        judge: Ask,
        *,
        attended: bool,
        session: str = "",
        surface: str = CLI,
        mode: str = "",
    ) -> tuple[Hook, ...]:
        """Build the tool-call hooks of one run. `granted` names capabilities (None: all of the surface); `judge` is
        the auxiliary model asked before a person (`approvals.mode: smart`). Call it once per run: approvals "for
        this run" are kept in these hooks."""
        named = frozenset(Capability) if granted is None else frozenset(map(late(CAPABILITY), granted))
        standpoint = Standpoint(
            granted=named & granted_to(surface, self.built_in.toolsets(surface)),
            grants=partial(self.granted_to, surface),
            is_owner=self._needs.get(Standings).is_owner,
            attended=attended,
            mode=mode,
            unasked=self._needs.get(Unasked).begin(session),
        )

        def make(where: str) -> Hook:
            hook: Hook = late(where)(self._needs, *((standpoint, judge) if where == PERMISSION else ()))
            return hook

        wanted = HOOKS if self._settings.checkpoints.enabled else HOOKS[:-1]
        return tuple(FirstUse(partial(make, where), HEEDS.get(where, _any)) for where in wanted)

    def wrong(self) -> tuple[str, ...]:
        """Warnings about unreadable files of the tools."""
        file = self._needs.get(Home).root / APPROVALS
        said = wrong_with(file) if file.exists() else ""
        return (said,) if said else ()

    async def close(self) -> None:
        """Close the sources, the place and the skills; running commands continue."""
        self._editors.drops.remove(self._drop)
        for source in (*self.sources, *self._of_sessions.values()):
            await source.close()
        await self.skills.close()
        await self._needs.get(Place).close()
        if self.skills.place is not None:
            await self.skills.place.close()


def _any(_: Proposed) -> bool:
    return True


HEEDS: Mapping[str, Callable[[Proposed], bool]] = {
    CHECKPOINTS: lambda proposed: proposed.facts.effect is not Effect.READS,
    LEARNING: lambda proposed: proposed.tool.schema.name in LEARNS,
}


class FirstUse:
    """Tool-call hook that is built at the first call that concerns it: a run without tool calls needs no hooks."""

    def __init__(self, make: Callable[[], Hook], heeds: Callable[[Proposed], bool]) -> None:
        self._make, self._heeds = make, heeds

    @cached_property
    def _hook(self) -> Hook:
        return self._make()

    async def before_call(self, proposed: Proposed) -> None:
        """As the hook itself."""
        if self._heeds(proposed):
            await self._hook.before_call(proposed)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """As the hook itself."""
        return await self._hook.after_call(proposed, answer) if self._heeds(proposed) else answer
