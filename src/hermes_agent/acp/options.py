"""What the person chooses for a session in the editor: model, effort, approvals, mode, commands and MCP servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, Protocol, TypeAlias

from acp import schema

from hermes_agent.acp.editor import Unanswered
from hermes_agent.acp.questions import Questions
from hermes_agent.acp.speech import Update
from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import command_of
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.choices import LEVELS, agree, agreed, choices_of, choose_approvals, choose_plan
from hermes_agent.app.operations.models import offers_of
from hermes_agent.app.operations.sessions import SessionRecord
from hermes_agent.app.system import System
from hermes_agent.app.tool_sources import EditorServer
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.tasks import spawn

MOST_MODELS, MOST_SKILLS, MOST_SHOWN = 100, 200, 2_000
MODES = {
    "ask": "Ask before what is dangerous.",
    "code": "Let the auxiliary model decide about calls first, and ask where it is unsure.",
    "plan": "Read only: no tool changes anything.",
}
UNASKED = "No questions; the deny list still holds."
APPROVALS = {"ask": MODES["ask"], "smart": MODES["code"], "unasked": UNASKED}
Category: TypeAlias = Literal["mode", "model", "model_config", "thought_level"]
SWITCHING = frozenset({"new", "resume", "branch", "sethome", "topic", "restart"})
"""Commands that lead to another session, or belong to chats: the editor has its own ways."""
SERVER_OPTIONS: dict[str, tuple[schema.PermissionOptionKind, str]] = {
    "once": ("allow_once", "Use them in this thread"),
    "always": ("allow_always", "Always use exactly these"),
    "deny": ("reject_once", "Do not use them"),
}
ASKED = "May I use the MCP servers of this editor here? They start behind the wall:\n{servers}"


class Open(Protocol):
    """The session whose options these are: its row, what shows an update, and what runs a slash command."""

    record: SessionRecord
    access: Access[System]

    @property
    def system(self) -> System: ...

    async def show(self, update: Update) -> None: ...

    async def perform(self, line: str) -> object: ...

    async def refresh(self) -> SessionRecord: ...


class SessionOptions:
    """The choices of one session. Each is kept where the terminal's commands keep it, so that every surface sees it."""

    def __init__(self, session: Open) -> None:
        self._session = session
        self._unasked = False
        self._commands_shown = self._options_shown = self._mode_shown = self._title = ""
        self._servers: tuple[EditorServer, ...] = ()

    def window(self) -> int:
        """The model's window in tokens; 0 where no model is configured."""
        with suppress(NoModel):
            return self._session.system.route(self._session.record.model).facts.window
        return 0

    async def state(self) -> tuple[list[schema.SessionConfigOptionSelect], schema.SessionModeState]:
        """The options and modes as they are."""
        return (await self._looked())[:2]

    async def _looked(self) -> tuple[list[schema.SessionConfigOptionSelect], schema.SessionModeState, bool, bool]:
        """The options and modes, and whether the editor was shown other options, and another mode, before."""
        chosen = await choices_of(self._session.access)
        is_off = chosen.approvals == "off"
        approvals = "unasked" if self._unasked or is_off else chosen.approvals
        mode = "plan" if chosen.plans else "ask" if approvals == "ask" else "code"
        models = await asyncio.to_thread(self._models)
        options = [
            _option("mode", "Mode", mode, MODES, "mode"),
            _option("effort", "Reasoning", chosen.effort, dict.fromkeys(LEVELS, ""), "thought_level"),
            _option("approvals", "Approvals", approvals, {"unasked": UNASKED} if is_off else APPROVALS),
        ]
        if models:
            options.insert(1, _option("model", "Model", models[0], dict.fromkeys(models, ""), "model"))
        modes = [schema.SessionMode(id=name, name=name.title(), description=text) for name, text in MODES.items()]
        shown = json.dumps([each.model_dump() for each in options])
        is_new = self._options_shown not in ("", shown), self._mode_shown not in ("", mode)
        self._options_shown, self._mode_shown = shown, mode  # No await since: of two that look at once, one shows it.
        return options, schema.SessionModeState(current_mode_id=mode, available_modes=modes), *is_new

    def _models(self) -> list[str]:
        """The models that could be asked now, the session's first."""
        system = self._session.system
        with suppress(NoModel):
            now = system.route(self._session.record.model).name
            others = sorted(each.model for each in offers_of(system) if each.ready and each.tools)
            listed = (now, system.route().name, *system.settings.model.fallbacks, *system.settings.models, *others)
            return list(dict.fromkeys(listed))[:MOST_MODELS]
        return []

    async def choose(self, name: str, value: str) -> None:
        """Set one option. Raises `HermesError`, with the nearest name or value."""
        options, _ = await self.state()
        option = next((each for each in options if each.id == name), None)
        if option is None:
            raise HermesError(_unknown("option", name, [each.id for each in options]))
        values = [each.value for each in option.options if isinstance(each, schema.SessionConfigSelectOption)]
        if value not in values and name != "model":
            raise HermesError(_unknown(f"value of `{name}`", value, values))
        match name:
            case "model":
                try:
                    await self._session.perform(f"/model {value}")
                except NoModel as error:
                    raise HermesError(str(error)) from error
            case "effort":
                await self._session.perform(f"/reasoning {value}")
            case "approvals":
                await self._approve(value)
            case _:
                await self.set_mode(value)
        await self._session.refresh()

    async def set_mode(self, mode: str) -> None:
        """Set the mode. Raises `HermesError`."""
        if mode not in MODES:
            raise HermesError(_unknown("mode", mode, list(MODES)))
        await choose_plan(self._session.access, plans=mode == "plan")
        if mode != "plan":
            await self._approve("ask" if mode == "ask" else "smart")

    async def _approve(self, value: str) -> None:
        system, session = self._session.system, self._session.record.id
        self._unasked = value == "unasked"
        await choose_approvals(self._session.access, "" if self._unasked else value)
        if not self._unasked:
            system.unasked.take_back(session)
        elif system.hermes.runs(session):
            system.unasked.say(session, system.owner.key, running=True)

    def before_run(self) -> None:
        """Turn questions off for the run that begins, where the person chose that."""
        if self._unasked:
            self._session.system.unasked.say(self._session.record.id, self._session.system.owner.key, running=False)

    async def show_changed(self) -> None:
        """Show the title, commands and options that changed."""
        session = self._session
        record = await session.refresh()
        if record.title != self._title:
            self._title = record.title
            await session.show(schema.SessionInfoUpdate(session_update="session_info_update", title=record.title))
        options, modes, other_options, other_mode = await self._looked()
        if other_options:
            await session.show(
                schema.ConfigOptionUpdate(session_update="config_option_update", config_options=list(options))
            )
        if other_mode:
            mode = modes.current_mode_id
            await session.show(schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))
        commands = await self._commands()
        shown = json.dumps([each.model_dump() for each in commands])
        if shown != self._commands_shown:
            self._commands_shown = shown
            await session.show(
                schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)
            )

    def refresh(self) -> None:
        """The same in the background, and again when a title was made."""
        spawn(self._refreshed(), name=f"options of {self._session.record.id}")

    async def _refreshed(self) -> None:
        with suppress(HermesError):  # The session was deleted.
            await self.show_changed()
            await self._session.system.settled()
            await self.show_changed()

    async def _commands(self) -> list[schema.AvailableCommand]:
        session, skills = self._session, self._session.system.skills
        found = [command_of(name) for name in COMMANDS if name not in SWITCHING]
        listed = [_command(each.name, each.summary, each.arguments) for each in found]
        here = skills.occasion(session.record.id, session.record.conversation)
        headers = await skills.library.all(session.record.workspace, here, limit=MOST_SKILLS)
        return [*listed, *(_command(each.name, each.description, "words") for each in headers)]

    def offer(self, servers: Sequence[EditorServer]) -> None:
        """Keep the editor's MCP servers for the session, until the person agrees. Raises `ConfigError`."""
        self._servers = tuple(servers)

    async def consent(self, questions: Questions) -> None:
        """Have the agent use the editor's servers, if the person agrees or did so before."""
        servers, self._servers = self._servers, ()
        if not servers:
            return
        system, session = self._session.system, self._session.record.id
        said = "\n".join(f"- {each.name}: {_line(each.where)}" for each in servers)
        digest = hashlib.sha256("\n".join(each.config for each in servers).encode()).hexdigest()[:32]
        if not system.settings.acp.trust_servers and not await agreed(self._session.access, digest):
            try:
                asked = ASKED.format(servers=said)
                word = await questions.choose("servers", asked, tuple(SERVER_OPTIONS), SERVER_OPTIONS)
            except Unanswered:
                word = "deny"
            if word == "always":
                await agree(self._session.access, digest)
            elif word != "once":
                return
        await system.editor_servers.put(session, servers)

    async def close(self) -> None:
        """End the servers of the session."""
        await self._session.system.editor_servers.drop(self._session.record.id)


def _line(text: str) -> str:
    """A command line or address on one line, so that it can pass for nothing else."""
    shown, more = "".join(each if each.isprintable() else " " for each in text), len(text) - MOST_SHOWN
    return f"{shown[:MOST_SHOWN]} (and {more:,} characters more)" if more > 0 else shown


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    near = nearest_key(name, known)
    meant = f"Did you mean `{near}`?" if near else f"There are: {', '.join(known)}."
    return f"There is no {what} `{name[:80]}`. {meant}"


def _option(
    name: str, title: str, now: str, values: dict[str, str], category: Category | None = None
) -> schema.SessionConfigOptionSelect:
    options = [
        schema.SessionConfigSelectOption(value=each, name=each, description=text or None)
        for each, text in values.items()
    ]
    return schema.SessionConfigOptionSelect(
        type="select",
        id=name,
        name=title,
        category=category,
        current_value=now,
        options=options,
    )


def _command(name: str, about: str, hint: str) -> schema.AvailableCommand:
    given = schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=hint)) if hint else None
    return schema.AvailableCommand(name=name, description=about, input=given)
