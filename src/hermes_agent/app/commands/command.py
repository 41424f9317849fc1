"""Slash command framework: the `Command` record, its context and result, and parsing and dispatch of a line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from difflib import get_close_matches

from hermes_agent.app.commands import ALIASES, COMMANDS, ELSEWHERE
from hermes_agent.app.operations.access import Access
from hermes_agent.app.system import System
from hermes_agent.core.chat import Inbound, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.messages import Text
from hermes_agent.host.late import late
from hermes_agent.providers.route import Route
from hermes_agent.runs.front import Hermes
from hermes_agent.store.sessions import Session as SessionRecord

PROMPT = "hermes_agent.app.commands.mcp:prompt"
CLOSE = 0.75
"""How like a command a word is that was probably mistyped: a far-off guess misleads."""


class NoCommand(HermesError):
    """A line looks like a slash command, but no command has that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Result of a slash command: a text for the person, the session to switch to (empty: stay), and a message to submit
    (None: none)."""

    text: str = ""
    session: str = ""
    submit: Inbound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Context of a slash command: system, session, and the message that holds it; `busy`: a run is active."""

    runtime: System
    record: SessionRecord
    inbound: Inbound
    busy: bool = False

    @property
    def access(self) -> Access[System]:
        """The access rights of the person who sent the command, in the conversation it came from."""
        said, record = self.inbound, self.record
        return Access(
            system=self.runtime,
            who=said.principal,
            where=said.conversation,
            session=record.id,
            folder=record.workspace,
        )

    @property
    def hermes(self) -> Hermes:
        """The front door."""
        return self.runtime.hermes

    @property
    def route(self) -> Route | None:
        """The session's model route; None if no model is configured, which commands show instead of failing."""
        try:
            return self.runtime.route(self.record.model)
        except NoModel:
            return None

    def message(self, text: str) -> Inbound:
        """The same message with another text."""
        origin = next((part.origin for part in self.inbound.parts if isinstance(part, Text)), None)
        part = Text(text=text) if origin is None else Text(text=text, origin=origin)
        return replace(self.inbound, parts=(part,) if text else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Definition of one slash command. `arguments` is the usage hint in the help; `act` gets the context and the rest
    of the line, stripped. `while_running`: allowed during a run; `at_once`: runs ahead of the queue."""

    name: str
    summary: str
    act: Callable[[Desk, str], Awaitable[Done]]
    arguments: str = ""
    while_running: bool = False
    at_once: bool = False


def command(
    name: str, summary: str, *, arguments: str = "", while_running: bool = False, at_once: bool = False
) -> Callable[[Callable[[Desk, str], Awaitable[Done]]], Command]:
    """Decorator: the function as a slash command (see `Command`)."""
    return lambda act: Command(
        name=name, summary=summary, act=act, arguments=arguments, while_running=while_running, at_once=at_once
    )


def find_command(line: str) -> tuple[Command, str] | None:
    """Parse a line into its command and the rest; None if it is no command. Raises `HermesError` for an unknown one.

    A line is a command if it begins with a slash and a word without another slash (`/etc/hosts` is a path).
    """
    head, _, rest = line.strip().partition(" ")
    name = head[1:]
    if not head.startswith("/") or not name or "/" in name or "\n" in head:
        return None
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        near = get_close_matches(name[:80], (*COMMANDS, *ALIASES), n=1, cutoff=CLOSE)
        meant = f"Did you mean `/{near[0]}`?" if near else "See `/help`."
        raise NoCommand(f"There is no command `/{name[:80]}`. {ELSEWHERE.get(name, meant)}")
    return command_of(name), rest.strip()


def command_of(name: str) -> Command:
    """A command of the table."""
    command: Command = late(COMMANDS[name])
    return command


async def perform(desk: Desk) -> Done | None:
    """Run the command of a line; None if the line is an ordinary message for the model."""
    try:
        found = find_command(desk.inbound.text)
    except NoCommand:
        if (submit := await _skill(desk) or await _prompt(desk)) is not None:
            return Done(submit=submit)
        raise
    if found is None:
        return None
    command, rest = found
    is_alias = desk.inbound.text.strip().partition(" ")[0][1:] in ALIASES  # A skill of that name is meant then.
    if is_alias and (submit := await _skill(desk)) is not None:
        return Done(submit=submit)
    if desk.busy and not command.while_running:
        raise HermesError(f"`/{command.name}` does not work during a run. `/stop` ends the run.")
    return await command.act(desk, rest)


async def _prompt(desk: Desk) -> Inbound | None:
    """The message that `/mcp__server__prompt words` stands for; None if no server has it."""
    if not desk.inbound.text.startswith("/mcp__"):
        return None
    found: Inbound | None = await late(PROMPT)(desk)
    return found


async def _skill(desk: Desk) -> Inbound | None:
    """The message that `/skill words` expands to; None if no skill has that name or the sender is a guest."""
    if desk.inbound.principal.standing is Standing.GUEST:
        return None
    where, who = (desk.record.workspace, desk.record.id, desk.record.conversation), desk.inbound.principal
    parts = await desk.runtime.skills.invoked(desk.inbound.text, *where, who)
    return None if parts is None else replace(desk.inbound, parts=parts)
