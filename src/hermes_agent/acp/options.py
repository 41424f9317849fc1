"""What the person chooses for a session in the editor: model, effort, approvals and mode; and the commands there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, TypeAlias

from acp import schema
from acp.helpers import update_available_commands, update_current_mode

from hermes_agent.acp.thread import Thread
from hermes_agent.app.commands import COMMANDS
from hermes_agent.app.commands.command import command_of
from hermes_agent.app.operations.choices import (
    AUTO_EDIT,
    LEVELS,
    choices_of,
    choose_approvals,
    choose_plan,
    choose_toolsets,
)
from hermes_agent.app.operations.models import offers_of
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.host.nearest import nearest_key
from hermes_agent.host.tasks import spawn

MOST_MODELS, MOST_SKILLS, LONGEST_MODEL = 100, 200, 200
MODES = {
    "ask": "Ask before what is dangerous.",
    "code": "Let the auxiliary model decide about calls first, and ask where it is unsure.",
    "plan": "Read only: no tool changes anything.",
}
UNASKED = {"unasked": "No questions; the deny list still holds."}
EDITS = {AUTO_EDIT: "Ask about commands, not about files that change."}
APPROVALS = {"ask": MODES["ask"], "smart": MODES["code"], **EDITS, **UNASKED}
TOOLS = {"all": "All tools of editors.", "coding": "No schedules, board, goals and messages to chats."}
Category: TypeAlias = Literal["mode", "model", "model_config", "thought_level"]
Options: TypeAlias = list[schema.SessionConfigOptionSelect]
Update: TypeAlias = (
    schema.SessionInfoUpdate | schema.AvailableCommandsUpdate | schema.ConfigOptionUpdate | schema.CurrentModeUpdate
)
SWITCHING = frozenset({"new", "resume", "branch", "sethome", "topic", "restart"})
"""Commands that lead to another session, or belong to chats: the editor has its own ways."""


class SessionOptions:
    """The choices of one session. Each is kept where the terminal's commands keep it, so that every surface sees it."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._shown = {"session_info_update": _update(title=thread.record.title).model_dump_json()}

    def window(self) -> int:
        """The model's window in tokens; 0 where no model is configured."""
        with suppress(NoModel):
            return self._thread.system.route(self._thread.record.model).facts.window
        return 0

    async def state(self) -> tuple[Options, schema.SessionModeState]:
        """The options and modes as they are, for an answer to the editor."""
        options = await self._options()
        self._are_new(options)
        modes = [schema.SessionMode(id=name, name=name.title(), description=text) for name, text in MODES.items()]
        return options, schema.SessionModeState(current_mode_id=options[0].current_value, available_modes=modes)

    async def _options(self) -> Options:
        chosen = await choices_of(self._thread.access)
        is_off = chosen.approvals == "off"
        is_unasked = is_off or self._thread.system.unasked.lasts(self._thread.record.id)
        approvals = "unasked" if is_unasked else chosen.approvals
        mode = "plan" if chosen.plans else "ask" if approvals in ("ask", AUTO_EDIT) else "code"
        models = await asyncio.to_thread(self._models)
        return [
            _option("mode", "Mode", mode, MODES, "mode"),
            *([_option("model", "Model", models[0], dict.fromkeys(models, ""), "model")] if models else []),
            _option("effort", "Reasoning", chosen.effort, dict.fromkeys(LEVELS, ""), "thought_level"),
            _option("approvals", "Approvals", approvals, UNASKED if is_off else APPROVALS),
            _option("toolsets", "Tools", chosen.toolsets, TOOLS),
        ]

    def _models(self) -> list[str]:
        """The models that could be asked now, the session's first."""
        system = self._thread.system
        with suppress(NoModel):
            now = system.route(self._thread.record.model).name
            others = sorted(each.model for each in offers_of(system) if each.ready and each.tools)
            listed = (now, system.route().name, *system.settings.model.fallbacks, *system.settings.models, *others)
            return list(dict.fromkeys(listed))[:MOST_MODELS]
        return []

    async def choose(self, name: str, value: str) -> Options:
        """Set one option, and show what changed. Raises `HermesError`, with the nearest name or value."""
        known = {each.id: [value.value for value in each.options] for each in await self._options()}
        _check("option", name, list(known))
        if name != "model":
            _check(f"value of `{name}`", value, known[name])
        elif len(value) > LONGEST_MODEL:
            raise HermesError(f"A model's name has at most {LONGEST_MODEL} characters: this one has {len(value):,}.")
        match name:
            case "model":
                try:
                    await self._thread.perform(f"/model {value}")
                except NoModel as error:
                    raise HermesError(str(error)) from error
            case "effort":
                await self._thread.perform(f"/reasoning {value}")
            case "approvals":
                await self._approve(value)
            case "toolsets":
                await choose_toolsets(self._thread.access, value)
            case _:
                await choose_plan(self._thread.access, plans=value == "plan")
                if value != "plan":
                    await self._approve("ask" if value == "ask" else "smart")
        return await self.show_changed()

    async def _approve(self, value: str) -> None:
        unasked, access = self._thread.system.unasked, self._thread.access
        await choose_approvals(access, "" if value == "unasked" else value)
        unasked.take_back(access.session)
        if value == "unasked":
            unasked.last(access.session, access.who.key)

    async def show_changed(self) -> Options:
        """Show the title, commands and options that changed. Returns the options."""
        title = _update(title=(await self._thread.refresh()).title)
        commands, options = update_available_commands(await self._commands()), await self._options()
        for update in self._are_new(options, title, commands):
            await self._thread.show(update)
        return options

    def _are_new(self, options: Options, *others: Update) -> list[Update]:
        """The updates that the editor does not know; of two that look at once, one shows a change."""
        changed = schema.ConfigOptionUpdate(session_update="config_option_update", config_options=list(options))
        updates: tuple[Update, ...] = (*others, changed, update_current_mode(options[0].current_value))
        lines = {each.session_update: (each.model_dump_json(), each) for each in updates}
        new = [each for kind, (line, each) in lines.items() if self._shown.get(kind) != line]
        self._shown |= {kind: line for kind, (line, _) in lines.items()}
        return new

    def refresh(self) -> None:
        """The same in the background, and again when a title was made."""
        spawn(self._refreshed(), name=f"options of {self._thread.record.id}")

    async def _refreshed(self) -> None:
        with suppress(HermesError):  # The session was deleted.
            await self.show_changed()
            await self._thread.system.settled()
            await self.show_changed()

    async def _commands(self) -> list[schema.AvailableCommand]:
        record, skills = self._thread.record, self._thread.system.skills
        here = skills.occasion(record.id, record.conversation)
        headers = await skills.library.all(record.workspace, here, limit=MOST_SKILLS)
        listed = [command_of(name) for name in COMMANDS if name not in SWITCHING]
        found = [(each.name, each.summary, each.arguments) for each in listed]
        return [_command(*each) for each in (*found, *((each.name, each.description, "words") for each in headers))]


def _check(what: str, name: str, known: Sequence[str]) -> None:
    """Raise `HermesError` with the nearest name for an unknown one."""
    if name not in known:
        near = nearest_key(name, known)
        meant = f"Did you mean `{near}`?" if near else f"There are: {', '.join(known)}."
        raise HermesError(f"There is no {what} `{name[:80]}`. {meant}")


def _update(title: str) -> schema.SessionInfoUpdate:
    return schema.SessionInfoUpdate(session_update="session_info_update", title=title)


def _option(
    name: str, title: str, now: str, values: Mapping[str, str], category: Category | None = None
) -> schema.SessionConfigOptionSelect:
    options = [
        schema.SessionConfigSelectOption(value=each, name=each, description=text or None)
        for each, text in values.items()
    ]
    return schema.SessionConfigOptionSelect(
        type="select", id=name, name=title, category=category, current_value=now, options=options
    )


def _command(name: str, about: str, hint: str) -> schema.AvailableCommand:
    given = schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=hint)) if hint else None
    return schema.AvailableCommand(name=name, description=about, input=given)
