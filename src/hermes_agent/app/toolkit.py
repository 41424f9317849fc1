"""The built-in tools of one process, by toolset, and what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from hermes_agent.agent.hooks import Hook, Proposed
from hermes_agent.app.manifest.manifest import lazy
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Location
from hermes_agent.core.errors import ConfigError, ToolError
from hermes_agent.core.inbound import Standing
from hermes_agent.core.tool import Answer, Tool
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home, environment, own_source
from hermes_agent.memory.notes import Notes
from hermes_agent.sandbox.environment import scrubbed
from hermes_agent.sandbox.place import Place, lazy_place
from hermes_agent.store.database import Store
from hermes_agent.tools.names import LENT_IN
from hermes_agent.tools.permission.unasked import Standpoint, Unasked
from hermes_agent.tools.surfaces import StandingOf, check_toolset, granted_to, rules_of, standing_here, toolsets_of
from hermes_agent.tools.todo import Todos
from hermes_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from hermes_agent.app.manifest.registry import ToolRegistry
    from hermes_agent.core.tool import Quarantined
    from hermes_agent.tools.permission.permission import Permission
    from hermes_agent.tools.permission.smart import Ask

# What a first answer needs none of.
SETS = "hermes_agent.app.manifest.registry:ToolRegistry"
NEEDS = "hermes_agent.app.manifest.registry:Needs"
CAPS = "hermes_agent.tools.excerpt:Caps"
COLLECT = "hermes_agent.tools.schema:collect"
CAPABILITY = "hermes_agent.tools.schema:capability_of"
PERMISSION = "hermes_agent.app.guards:permission_hook"
GUARDRAILS = "hermes_agent.app.guards:guardrail_hook"
SPILL = "hermes_agent.app.guards:spill_hook"
CHECKPOINTS = "hermes_agent.app.checkpoints.checkpoint_hook:checkpoint_hook"
NEARBY = "hermes_agent.app.subfolder_context:subfolder_context_hook"
DECIDES = "hermes_agent.tools.permission.permission:Permission"
OPENED = "hermes_agent.tools.handles:OpenHandles"
PLACE = "hermes_agent.app.places:make_place"
SKILLS_PLACE = "hermes_agent.app.places:skills_place"
APPROVALS = "approvals.yaml"
WRONG_WITH = "hermes_agent.tools.permission.remembered:wrong_with"
REMEMBERED = "hermes_agent.tools.permission.remembered:RememberedFile"

TOOLSETS = ("files", "shell", "code", "web", "todo", "skills", "memory", "recall", "clarify", "sending")
"""The built-in toolsets, in the order in which the prompt names their tools."""
IN_CHATS = frozenset({"sending"})
"""Those that only chats have: elsewhere nobody would get what they send."""
CLI = "cli"
SMALL_WINDOW = 16_384
"""Tokens of a window below which a prompt shows only what nearly every piece of work needs."""


def no_notes() -> Notes:
    """Where there is no database."""
    raise ConfigError("There are no notes without a database.")


def no_store() -> Store:
    """Where there is no log."""
    raise ToolError("There is no log of conversations here.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What guards and tools ask of the rest, when they need it: `secret` for the value of a secret, empty where there
    is none, `redact` for a text without any known secret, `mask` for one of the same
    length; `notes` for those of the home, `standing` what a principal,
    by their key, is to this agent. `http` is what the web is reached by. `store` gives the log. `unasked` is what
    people said about questions, `allowed` what they allowed beforehand. `delivers` tells surfaces that are chats."""

    secret: Callable[[str], str] = lambda _: ""
    redact: Callable[[str], str] = str
    mask: Callable[[str], str] = str
    notes: Callable[[], Notes] = no_notes
    store: Callable[[], Store] = no_store
    standing: StandingOf = standing_here
    http: Http = field(default_factory=Http)
    delivers: Callable[[str], bool] = lambda _: False
    unasked: Unasked = field(default_factory=Unasked)
    allowed: tuple[str, ...] = ()

    def is_owner(self, principal: str) -> bool:
        """Whether it is the one whose home this is."""
        return self.standing(principal) is Standing.OWNER


class Toolkit:
    """The toolboxes of this process, and the permission that its calls need.

    `toolsets` narrows the built-in ones (None: all); an unknown name raises `ConfigError`. `quarantined` names tools
    that are not offered, with the reason.
    """

    def __init__(
        self,
        home: Home,
        settings: Settings,
        clock: Clock,
        toolsets: Sequence[str] | None,
        extra: Sequence[Tool],
        means: Means | None = None,
    ) -> None:
        for name in toolsets or ():
            check_toolset(name, TOOLSETS)
        self._home, self._settings, self._clock = home, settings, clock
        self._means = means = means or Means()
        self.unasked = means.unasked
        self._place = self._chosen()
        self._todos = Todos(home.cache / "todo")
        self._skills_place = self._place if settings.terminal.place != "local" else self._chosen(SKILLS_PLACE)
        self.skills = Skills(home, settings.skills, clock, lambda: means.notes().store, self._skills_place)
        self._toolsets, self._extra = toolsets, extra
        self._boxes: dict[tuple[str, bool, tuple[str, ...]], Toolbox] = {}
        self._grants: dict[tuple[str, Standing], frozenset[Capability]] = {}
        self._built_in: dict[str, tuple[Tool, ...]] = {}

    async def location(self, workspace: str) -> Location:
        """Where the commands of a workspace are recorded."""
        return await self._place.location(workspace)

    @property
    def is_owner(self) -> Callable[[str], bool]:
        """Whether a principal, by their key, is the one whose home this is."""
        return self._means.is_owner

    def toolsets(self, surface: str, narrowed: Sequence[str] = ()) -> tuple[str, ...]:
        """The toolsets of a surface, of those that it is `narrowed` to. Raises `ConfigError` where settings name one
        that does not exist."""
        for name in narrowed:
            check_toolset(name, TOOLSETS)
        chosen = toolsets_of(surface, TOOLSETS, self._settings.tools)
        return tuple(
            name
            for name in chosen
            if (self._toolsets is None or name in self._toolsets)
            and (not narrowed or name in narrowed)
            and (name not in IN_CHATS or self._means.delivers(surface))
        )

    def granted_to(self, surface: str, principal: str) -> frozenset[Capability]:
        """What a principal, by their key, may use on a surface."""
        found = self._grants.get((surface, standing := self._means.standing(principal)))
        if found is None:
            ruling = rules_of(surface, standing)
            found = granted_to(ruling, toolsets_of(ruling, TOOLSETS, self._settings.tools))
            self._grants[surface, standing] = found
        return found

    def _opened(self, tool: Tool) -> Tool:
        """The tool with secrets in its arguments."""
        opened: Tool = late(OPENED)(tool, self._means.secret, self._settings.secrets, self._home.cache / LENT_IN)
        return opened

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """The tools of others that are not offered."""
        aside: tuple[Quarantined, ...] = self._others[1]
        return aside

    def tools_of(self, toolset: str) -> tuple[Tool, ...]:
        """The tools of one built-in toolset."""
        if toolset not in self._built_in:
            self._built_in[toolset] = lazy(toolset, lambda: self.sets.tools_of(toolset))
        return self._built_in[toolset]

    @cached_property
    def sets(self) -> ToolRegistry:
        """The built-in toolsets themselves; asking for them loads every tool."""
        means = self._means
        needs = late(NEEDS)(
            home=self._home,
            settings=self._settings,
            place=self._place,
            todos=self._todos,
            skills=self.skills,
            http=means.http,
            secret=means.secret,
            redact=means.redact,
            mask=means.mask,
            notes=means.notes,
            store=means.store,
            is_owner=means.is_owner,
        )
        sets: ToolRegistry = late(SETS)(needs)
        return sets

    @property
    def _others(self) -> tuple[tuple[Tool, ...], tuple[Quarantined, ...]]:
        """The tools of others, and those that cannot be offered."""
        if not self._extra:
            return (), ()
        found: tuple[tuple[Tool, ...], tuple[Quarantined, ...]] = late(COLLECT)(self._extra)
        return found

    def toolbox(self, surface: str, window: int = 0, narrowed: tuple[str, ...] = ()) -> Toolbox:
        """The tools of a surface, of the toolsets that it is `narrowed` to: what is not in it cannot be called there.
        In a small window (tokens; 0: not known) fewer of them are shown, and the others are found."""
        small = 0 < window < SMALL_WINDOW
        if (surface, small, narrowed) not in self._boxes:
            wanted = [tool for name in self.toolsets(surface, narrowed) for tool in self.tools_of(name)]
            tools = (*wanted, *self._others[0])
            self._boxes[surface, small, narrowed] = Toolbox(tools, self._opened, small=small)
        return self._boxes[surface, small, narrowed]

    def hooks(
        self,
        granted: Sequence[str] | None,
        *,
        attended: bool,
        session: str = "",
        surface: str = CLI,
        judge: Ask | None = None,
    ) -> tuple[Hook, ...]:
        """What stands around every call of a run; `granted` names capabilities, None all that the surface has; `judge`
        is the auxiliary model that is asked before a person (`approvals.mode: smart`). To be asked for once a run: what
        people said about this run holds for these hooks alone."""
        named = frozenset(Capability) if granted is None else frozenset(map(late(CAPABILITY), granted))
        standpoint = Standpoint(
            granted=named & granted_to(surface, self.toolsets(surface)),
            grants=partial(self.granted_to, surface),
            attended=attended,
            unasked=self.unasked.begin(session),
        )
        return (
            FirstUse(self._spill),
            FirstUse(lambda: late(NEARBY)(self._home.cache / "context")),
            FirstUse(lambda: late(GUARDRAILS)(self._settings.guardrails)),
            FirstUse(lambda: self._permission_hook(standpoint, judge)),
            *([FirstUse(self._checkpoint_hook)] if self._settings.checkpoints.enabled else []),
        )

    def _checkpoint_hook(self) -> Hook:
        hook: Hook = late(CHECKPOINTS)(self._home.root / "checkpoints", self._settings.checkpoints, self._clock)
        return hook

    def _permission_hook(self, standpoint: Standpoint, judge: Ask | None) -> Hook:
        variables = scrubbed(environment(), self._settings.terminal.env_passthrough)
        asked = judge if self._settings.approvals.mode == "smart" else None
        hook: Hook = late(PERMISSION)(self._permission, self.sets.shell, variables, standpoint, asked)
        return hook

    def offer(self, tools: Sequence[object]) -> None:
        """Add tools before anybody asked for a toolbox."""
        self._extra = (*self._extra, *late(COLLECT)(tools)[0])

    @property
    def tail(self) -> tuple[Todos, ...]:
        """What the tools say beside each message."""
        return (self._todos,)

    def wrong(self) -> tuple[str, ...]:
        """Sentences about files of the tools that cannot be read."""
        file = self._home.root / APPROVALS
        said: str = late(WRONG_WITH)(file) if file.exists() else ""
        return (said,) if said else ()

    @cached_property
    def _permission(self) -> Permission:
        remembered = late(REMEMBERED)(self._home.root / APPROVALS, self._clock)
        made: Permission = late(DECIDES)(
            self._settings.approvals, remembered, allowed=self._means.allowed, source=str(own_source())
        )
        return made

    def _spill(self) -> Hook:
        output = self._settings.tool_output
        caps = late(CAPS)(max_bytes=output.max_bytes, max_lines=output.max_lines)
        hook: Hook = late(SPILL)(self._home.cache / "results", caps, self._means.redact)
        return hook

    async def close(self) -> None:
        """End what is held open for the place and the skills; commands go on."""
        await self.skills.close()
        await self._place.close()
        await self._skills_place.close()

    def _chosen(self, maker: str = PLACE) -> Place:
        def make() -> Place:
            made: Place = late(maker)(self._home, self._settings.terminal, environment())
            return made

        return lazy_place(self._settings.terminal.place, make)


class FirstUse:
    """A hook that is made when the first call comes: an answer without tools needs none of it."""

    def __init__(self, make: Callable[[], Hook]) -> None:
        self._make = make

    @cached_property
    def _hook(self) -> Hook:
        return self._make()

    async def before_call(self, proposed: Proposed) -> None:
        """As the hook itself."""
        await self._hook.before_call(proposed)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """As the hook itself."""
        return await self._hook.after_call(proposed, answer)
