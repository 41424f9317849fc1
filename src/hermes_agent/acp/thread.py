"""A session as one editor has it open, and the questions of its runs: permissions, forms and choices in the editor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, assert_never

from acp import schema
from acp.helpers import text_block, tool_content
from pydantic import BaseModel, ValidationError

from hermes_agent.acp.editor import FORM, PERMISSION, Editor, Unanswered
from hermes_agent.acp.speech import message
from hermes_agent.app.commands.command import Desk, Done, perform
from hermes_agent.app.intake import Part
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.questions import answer_open
from hermes_agent.app.operations.sessions import SessionRecord, get_session
from hermes_agent.app.system import System
from hermes_agent.core.chat import Busy, Conversation, Inbound
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Answered, Asked, Event, RunEnded
from hermes_agent.core.forms import DECLINE, Field
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.tasks import spawn

PLATFORM = "acp"
SWITCHED = "{text}\n\nThis thread stays with its session: open {session} from the editor's list of sessions."
Named: TypeAlias = Mapping[str, tuple[schema.PermissionOptionKind, str]]
OPTIONS: Named = {
    "once": ("allow_once", "Allow once"),
    "session": ("allow_always", "Allow in this session"),
    "always": ("allow_always", "Always allow exactly this"),
    "rule": ("allow_always", "Always allow what the rule says"),
    "deny": ("reject_once", "Deny"),
    DECLINE: ("reject_once", "Decline"),
}
"""How choices are shown; any other stands for itself."""
ANSWER = "answer"
IN_WORDS = {
    "approval": "`/approve` allows it, `/deny` refuses it.",
    "clarify": "Your next message answers it.",
}
LONGEST_TITLE = 200


class FormAnswer(schema.BaseModel):
    """What comes of a form, however it ends."""

    action: str
    content: dict[str, Any] | None = None


class Thread:
    """A session in an editor. `source` begins the ids of its messages; `prompts` are those under way."""

    def __init__(self, system: System, editor: Editor, record: SessionRecord, source: str) -> None:
        self.system, self.editor, self.record = system, editor, record
        self._source, self._count = source, 0
        self._where = Conversation(platform=PLATFORM, chat_kind="folder", chat=record.workspace)
        self.access: Access[System] = Access(
            system=system, who=system.owner, where=self._where, session=record.id, folder=record.workspace
        )
        self.origin = Origin(system.owner.standing.value)

    async def show(self, update: BaseModel) -> None:
        """Send an update when there is room for it."""
        await self.editor.update(self.record.id, update)

    async def say(self, text: str) -> None:
        """Say something that no run says."""
        await self.show(message(text, f"command:{self._next()}"))

    def _next(self) -> str:
        self._count += 1
        return f"{self._source}:{self._count}"

    def inbound(self, parts: tuple[Part, ...], answers: str = "") -> Inbound:
        """A message of the person at the editor."""
        return Inbound(
            source=PLATFORM,
            source_id=self._next(),
            principal=self.access.who,
            conversation=self._where,
            parts=parts,
            received=self.system.clock.now(),
            busy=Busy(self.system.settings.acp.busy),
            answers=answers,
        )

    async def perform(self, line: str) -> Done | None:
        """Run a slash command; None for an ordinary message. Raises `HermesError`."""
        record, busy = await self.refresh(), self.system.hermes.runs(self.record.id)
        inbound = self.inbound((Text(text=line, origin=self.origin),))
        done = await perform(Desk(runtime=self.system, record=record, inbound=inbound, busy=busy))
        if done is not None and done.session not in ("", record.id):
            return Done(text=SWITCHED.format(text=done.text, session=done.session))
        return done

    async def refresh(self) -> SessionRecord:
        """Read the session's row again: title or model may have changed. Raises `UnknownSession`."""
        self.record = await get_session(self.access, self.record.id)
        return self.record

    def cancel(self) -> None:
        """End what the editor asked for."""


class Questions:
    """The open questions of one session's runs."""

    def __init__(self, thread: Thread) -> None:
        self._thread, self._editor = thread, thread.editor
        self._open: dict[str, asyncio.Task[None]] = {}

    def shows(self, asked: Asked) -> bool:
        """Whether the editor can show the question other than as text."""
        return asked.purpose == "approval" or bool(asked.choices) or self._editor.has_forms

    def see(self, event: Event) -> None:
        """Ask the editor, or withdraw what is answered."""
        match event:
            case Asked(question=name) if name not in self._open and self.shows(event):
                self._open[name] = spawn(self._ask(event), name=f"question {name} in the editor")
            case Answered(question=name) if name in self._open:
                self._open.pop(name).cancel()
            case RunEnded():
                self.withdraw()
            case _:
                pass

    def withdraw(self) -> None:
        """Withdraw all of them."""
        for task in self._open.values():
            task.cancel()
        self._open.clear()

    async def _ask(self, asked: Asked) -> None:
        is_form = asked.purpose == "clarify" and self._editor.has_forms
        call = asked.question.partition(f".{asked.purpose}")[0]
        try:
            answer = await (self._form(call, asked) if is_form else self._choice(call, asked.text, asked.choices))
        except (Unanswered, ValidationError):  # The run waits, also for an answer on another surface.
            await self._thread.say(f"{asked.text}\n{IN_WORDS[asked.purpose]}")
            return
        if answer is None:
            self._thread.cancel()
            return
        self._open.pop(asked.question, None)
        access = self._thread.access
        with suppress(HermesError):  # One that comes too late changes nothing.
            await answer_open(access, access.session, asked.question, answer, self._thread.origin)

    async def choose(self, call: str, text: str, named: Named) -> str:
        """Have the person choose; empty where the editor gives no answer."""
        with suppress(Unanswered):
            return await self._choice(call, text, tuple(named), named) or ""
        return ""

    async def _choice(self, call: str, text: str, choices: Sequence[str], named: Named = OPTIONS) -> str | None:
        """The choice; None where the editor says that the turn is cancelled. Raises `Unanswered`."""
        shown = [(choice, *named.get(choice, ("allow_once", choice))) for choice in choices]
        options = [schema.PermissionOption(option_id=choice, name=name, kind=kind) for choice, kind, name in shown]
        title = text.partition("\n")[0][:LONGEST_TITLE]
        update = schema.ToolCallUpdate(
            tool_call_id=call, title=title, status="pending", content=[tool_content(text_block(text))]
        )
        request = schema.RequestPermissionRequest(session_id=self._thread.record.id, tool_call=update, options=options)
        outcome = (await self._editor.ask(PERMISSION, request, schema.RequestPermissionResponse)).outcome
        if isinstance(outcome, schema.DeniedOutcome):
            return None
        return outcome.option_id if outcome.option_id in choices else "deny"

    async def _form(self, call: str, asked: Asked) -> str | None:
        fields = asked.fields or (Field(name=ANSWER, choices=asked.choices, required=True),)
        properties = {field.name: _property(field) for field in fields}
        required = [field.name for field in fields if field.required]
        form = {"type": "object", "properties": properties, "required": required}
        request = schema.CreateFormSessionElicitationRequest(
            session_id=self._thread.record.id,
            tool_call_id=call,
            message=asked.text,
            mode="form",
            requested_schema=schema.ElicitationSchema.model_validate(form),
        )
        given = await self._editor.ask(FORM, request, FormAnswer)
        content = given.content or {}
        match given.action:
            case "accept" if asked.fields:
                return json.dumps({name: value for name, value in content.items() if name in properties})
            case "accept" | "decline":
                return str((given.action == "accept" and content.get(ANSWER)) or DECLINE)
            case _:
                return None


def _property(field: Field) -> dict[str, Any]:
    """A field as a property of a form's schema."""
    found: dict[str, Any] = {"title": field.title or field.name}
    if field.default:
        found["default"] = json.loads(field.default)
    named = zip(field.choices, field.labels or field.choices, strict=False)
    options = [{"const": value, "title": title} for value, title in named]
    match field.type:
        case "number" | "integer" | "boolean":
            return {**found, "type": field.type}
        case "choices":
            return {**found, "type": "array", "items": {"anyOf": options}}
        case "text" | "choice":
            return {**found, "type": "string", **({"oneOf": options} if options else {})}
        case _:
            assert_never(field.type)
