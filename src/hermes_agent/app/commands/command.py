"""What a slash command is, what it may use, and how a line becomes one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from difflib import get_close_matches

from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.operations.access import Access
from hermes_agent.app.system import System
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.inbound import Inbound, Standing
from hermes_agent.core.messages import Text
from hermes_agent.host.late import late
from hermes_agent.providers.route import Route
from hermes_agent.runs.front import Hermes
from hermes_agent.store.sessions import Session as SessionRecord


class NoCommand(HermesError):
    """A line that begins like a command and names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command leaves behind: a text for the person, the session that the surface goes on with (empty: the same),
    and a message to submit (None: nothing)."""

    text: str = ""
    session: str = ""
    submit: Inbound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a command works: the system, the session, and the line as it came."""

    runtime: System
    record: SessionRecord
    inbound: Inbound
    busy: bool = False

    @property
    def access(self) -> Access[System]:
        """The person who gave the command, where they gave it."""
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
        """The session's route; None where there is no model, which is a thing to show and not to fail by."""
        try:
            return self.runtime.route(self.record.model)
        except NoModel:
            return None

    def message(self, text: str) -> Inbound:
        """The same message with other words."""
        origin = next((part.origin for part in self.inbound.parts if isinstance(part, Text)), None)
        part = Text(text=text) if origin is None else Text(text=text, origin=origin)
        return replace(self.inbound, parts=(part,) if text else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One slash command. `arguments` is the hint in the help; `act` gets the rest of the line, stripped. One that is
    done `at_once` is quick, and decides where what is said next belongs."""

    name: str
    summary: str
    act: Callable[[Desk, str], Awaitable[Done]]
    arguments: str = ""
    while_running: bool = False
    at_once: bool = False


def find_command(line: str) -> tuple[Command, str] | None:
    """The command of a line and the rest of it; None where the line is no command. Raises `HermesError` for an unknown
    one.

    A line is a command when it begins with a slash and a word without another slash (`/etc/hosts` is a path).
    """
    head, _, rest = line.strip().partition(" ")
    name = head[1:]
    if not head.startswith("/") or not name or "/" in name or "\n" in head:
        return None
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1)
        raise NoCommand(
            f"There is no command `/{name}`." + (f" Did you mean `/{near[0]}`?" if near else " See `/help`.")
        )
    return command_of(name), rest.strip()


def command_of(name: str) -> Command:
    """A command of the table."""
    command: Command = late(COMMANDS[name])
    return command


async def perform(desk: Desk) -> Done | None:
    """Do what the line says; None where it is no command but words for the model."""
    try:
        found = find_command(desk.inbound.text)
    except NoCommand:
        if (submit := await _skill(desk)) is not None:
            return Done(submit=submit)
        raise
    if found is None:
        return None
    command, rest = found
    if desk.busy and not command.while_running:
        raise HermesError(f"`/{command.name}` does not work during a run. `/stop` ends the run.")
    return await command.act(desk, rest)


async def _skill(desk: Desk) -> Inbound | None:
    """The message that a line such as `/skill words` means; None where it names no skill, or a guest wrote it."""
    if desk.inbound.principal.standing is Standing.GUEST:
        return None
    where, who = (desk.record.workspace, desk.record.id, desk.record.conversation), desk.inbound.principal
    parts = await desk.runtime.skills.invoked(desk.inbound.text, *where, who)
    return None if parts is None else replace(desk.inbound, parts=parts)
