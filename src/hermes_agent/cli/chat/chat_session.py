"""Session of the terminal chat: finds or creates it, submits typed lines to it, lists the available slash commands, and
keeps the data of the status line."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from hermes_agent.app.commands import ALIASES, COMMANDS
from hermes_agent.app.commands.command import Desk, Done, command_of, perform
from hermes_agent.app.operations import sessions as operations
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.background import resume_agents
from hermes_agent.app.operations.questions import answer_in_words
from hermes_agent.app.operations.sessions import SessionRecord
from hermes_agent.app.system import System
from hermes_agent.app.work import work_opened
from hermes_agent.cli.chat.text import one_line
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.output import shortened, width
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Delegated, Entry, Event, Pinned, Replied, RunEnded, ToolEnded, Unpinned
from hermes_agent.core.messages import Origin, Text, ToolResult
from hermes_agent.core.shown import plural
from hermes_agent.host.paths import current_folder
from hermes_agent.skills.invoke import bundles_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """Menu entry of a slash command in the chat: name, summary and arguments."""

    name: str
    summary: str
    arguments: str = ""


HERE = (
    Name(name="quit", summary="Leave (also Ctrl-D)."),
    Name(name="keys", summary="Show the keys."),
    Name(name="output", summary="Show the folded output of the latest call whole (also Ctrl-O)."),
    Name(name="copy", summary="Copy the last reply to the clipboard."),
    Name(name="export", summary="Write the conversation into a file: .md, .html or .jsonl.", arguments="[FILE]"),
    Name(name="doctor", summary="Check this installation and say what to do."),
    Name(name="thinking", summary="Show thoughts whole or in short (also Ctrl-T)."),
)
"""What only a terminal has."""


def names() -> list[Name]:
    """All commands."""
    commands = map(command_of, COMMANDS)
    shared = [Name(name=each.name, summary=each.summary, arguments=each.arguments) for each in commands]
    return [*shared, *HERE]


def usage(line: str) -> str:
    """Usage hint of the command that a line begins with; empty if it is none or takes no arguments."""
    if not line.startswith("/") or not line[1:].strip():
        return ""
    word = line[1:].split(maxsplit=1)[0]
    name = ALIASES.get(word, word)
    found = next((each for each in names() if each.name == name and each.arguments), None)
    return f"/{word} {found.arguments}" if found is not None else ""


def more_help() -> str:
    """Help lines for the terminal's own commands."""
    return "\n".join(f"/{each.name:<12}{each.summary}" for each in HERE)


GAP = " · "
STARTED, LONGEST_START = "Started in the background as ", 100
"""Says in a result that a command goes on behind the session."""


@dataclass(slots=True, kw_only=True)
class Status:
    """Data of the chat's status line: model, session, calls, tokens and cost.

    `window` and `used` in tokens (`used` None: unknown), `cost` in US dollars without the `unpriced` calls; `pins` by
    id, each with whether it forbids changes; `background`: whether a
    command was started behind it; `children` are delegated sessions at work, by call; `more` gives the
    states that no event tells.
    """

    model: str
    window: int
    session: str = ""
    title: str = ""
    notice: bool = False
    walled: bool = True
    used: int | None = None
    calls: int = 0
    cost: float = 0.0
    unpriced: int = 0
    pins: dict[str, bool] = field(default_factory=dict)
    background: bool = False
    children: Counter[str] = field(default_factory=Counter)
    more: Callable[[], Sequence[str]] = tuple

    def see(self, event: Event) -> None:
        """Apply an event: count replies and their usage."""
        match event:
            case Replied(usage=usage, cost=cost):
                self.calls += 1
                self.used = usage.input + usage.output if usage.known else self.used
                self.cost += cost or 0.0
                self.unpriced += cost is None
            case Pinned(pin=pin, denies=denies):
                self.pins[pin] = bool(denies)
            case Unpinned(pin=pin):
                self.pins.pop(pin, None)
            case Delegated(call_id=call_id):
                self.children[call_id] += 1
            case ToolEnded(call_id=call_id, message=message):
                self.children.pop(call_id, None)
                texts = (part.text[:LONGEST_START] for part in message.parts if isinstance(part, ToolResult))
                self.background = self.background or any(STARTED in text for text in texts)
            case RunEnded():
                self.children.clear()
            case _:
                pass

    @property
    def context(self) -> str:
        """Share of the context window in use, as text."""
        if not self.calls:
            return ""
        if self.used is None or not self.window:
            return "context unknown"
        return f"context {100 * self.used / self.window:.0f} %"

    @property
    def price(self) -> str:
        """The session's cost, as text."""
        if not self.calls:
            return ""
        if self.unpriced == self.calls:
            return "cost unknown"
        return f"${self.cost:.4f}" + (" + unknown" if self.unpriced else "")

    def _states(self) -> list[str]:
        """What holds now and is easily forgotten, most important first."""
        pinned = "read only" if any(self.pins.values()) else plural(len(self.pins), "pin") if self.pins else ""
        children = plural(self.children.total(), "agent") if self.children else ""
        states = ["! no wall" if not self.walled else "", "! config.yaml" if self.notice else "", pinned]
        return [*filter(None, (*states, children)), *self.more()]

    def line(self, activity: str, columns: int) -> str:
        """The line in at most `columns` cells; the least important parts are dropped first."""
        name = one_line(self.title or self.session, 30)
        parts = [activity, GAP.join(self._states()), self.model, self.context, self.price, name]
        least_first = [5, 4, 3, 2, 1]
        while width(GAP.join(filter(None, parts))) > columns and least_first:
            parts[least_first.pop(0)] = ""
        return shortened(GAP.join(filter(None, parts)), columns)


MOST_SKILLS = 1_000


class ChatSession:
    """The session behind one terminal chat. A new one is created with the first line, so that an unused chat leaves no
    session behind. `asked` is the id of the question in the greeting."""

    def __init__(self, runtime: System, invocation: Invocation) -> None:
        self.runtime = runtime
        self.record: SessionRecord | None = None
        self.access: Access[System] = Access(system=runtime, who=runtime.owner)
        self.invocation = invocation
        self._preload = invocation.skills
        self.workspace = str(current_folder())
        self.skills: tuple[tuple[str, str], ...] = ()
        self.asked = ""
        self.no_wall = ""
        self.conversation = Conversation(platform="cli", chat_kind="folder", chat=self.workspace)

    @property
    def session(self) -> str:
        """The session's id; empty before the first line."""
        return self.record.id if self.record is not None else ""

    @property
    def folder(self) -> str:
        """The session's working folder."""
        return self.record.workspace if self.record is not None and self.record.workspace else self.workspace

    async def open(self) -> None:
        """Find the session that the command line names. Raises `UnknownSession`."""
        invocation = self.invocation
        if invocation.resume:
            self.record = await operations.find_session(self.access, invocation.resume)
        elif invocation.go_on:
            self.record = await operations.current_session(self.runtime, self.conversation)
        if self.record is None:
            return
        await work_opened(self.runtime.snapshots.now.needs, self.record)
        if invocation.model and invocation.model != self.record.model:
            await self.runtime.hermes.choose(self.record.id, invocation.model)
            await self.refresh()
        if invocation.resume:
            await self.runtime.hermes.make_current(self.conversation, self.record.id)

    async def see_skills(self) -> None:
        """Load the skills and bundles for completion: name and description."""
        kept = self.runtime.skills
        here = kept.occasion(self.session, self.record.conversation if self.record else self.conversation.key)
        headers = await kept.library.all(self.folder, here, limit=MOST_SKILLS)
        bundles = await asyncio.to_thread(bundles_of(kept.library.places.home).names)
        self.skills = (
            *((name, "A bundle of skills.") for name in bundles),
            *((c.name, c.description) for c in headers),
        )

    async def refresh(self) -> None:
        """Reload the session's record: its title or model may have changed."""
        if self.record is not None:
            self.record = await operations.get_session(self.access, self.record.id)

    async def entries(self) -> Sequence[Entry]:
        """The session's log."""
        return await operations.read_log(self.access, self.session) if self.record is not None else ()

    def status(self) -> Status:
        """A new status line for the session. Raises `NoModel`."""
        record, terminal = self.record, self.runtime.loaded.value.terminal
        route = self.runtime.route(record.model if record is not None else self.invocation.model)
        return Status(
            model=route.name,
            window=route.facts.window,
            session=self.session,
            title=record.title if record is not None else "",
            notice=bool(self.runtime.loaded.notice),
            walled=not self.no_wall and (terminal.place != "local" or terminal.jail != "none"),
        )

    async def ensure(self) -> SessionRecord:
        """The session, created if there is none."""
        if self.record is None:
            self.record = await self.runtime.hermes.open_session(
                self.conversation, self.runtime.owner, workspace=self.workspace, model=self.invocation.model, new=True
            )
        return self.record

    async def command(self, line: str, *, busy: bool) -> Done | None:
        """Run a slash command, or take a line for the answer to a question that no run waits for; None if it is an
        ordinary message. Raises `HermesError`."""
        record = await self.ensure()
        access, asked, self.asked = replace(self.access, session=record.id, folder=self.folder), self.asked, ""
        if (text := await answer_in_words(access, line, also=asked)) is not None:
            return Done(text=text)
        done = await perform(Desk(runtime=self.runtime, record=record, inbound=self.inbound(line), busy=busy))
        if done is not None and done.session and done.session != record.id:
            self.record = await operations.get_session(self.access, done.session)
        else:
            await self.refresh()
        return done

    async def submit(self, inbound: Inbound) -> int | None:
        """Submit a message. Returns its inbox row."""
        record = await self.ensure()
        if self._preload and inbound.parts and not inbound.answers:
            names, self._preload = self._preload, ""
            first = await self.runtime.skills.preloaded(names, record.workspace, record.id, record.conversation)
            inbound = replace(inbound, parts=(first, *inbound.parts))
        return (await self.runtime.hermes.submit(inbound, record.id)).inbox

    async def answer(self, question: str, answer: str) -> None:
        """Answer a question that the run waits with."""
        await self.submit(replace(self.inbound(answer), answers=question))

    async def resume(self) -> bool:
        """Resume work that a crash interrupted, and agents that were left; False if no run is open, or another process
        runs it."""
        if self.record is None:
            return False
        await resume_agents(self.runtime, self.record.id)
        return await self.runtime.hermes.resume(self.record.id)

    async def stop(self) -> None:
        """Stop the run at once."""
        if self.record is not None:
            await self.runtime.hermes.stop(self.record.id)

    def inbound(self, text: str) -> Inbound:
        """A message of the person at this terminal."""
        return Inbound(
            source="cli",
            source_id=self.runtime.ids.short(),
            principal=self.runtime.owner,
            conversation=self.conversation,
            parts=(Text(text=text, origin=Origin.OWNER),),
            received=self.runtime.clock.now(),
        )
