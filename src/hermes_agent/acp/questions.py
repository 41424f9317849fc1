"""Questions of runs in the editor: permissions, forms and choices; withdrawn when they are answered elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, assert_never

from acp import schema

from hermes_agent.acp.editor import ELICITATION, PERMISSION, Editor, Unanswered
from hermes_agent.acp.speech import shown
from hermes_agent.core.events import Answered, Asked, Event, RunEnded
from hermes_agent.core.forms import DECLINE, Field
from hermes_agent.host.tasks import spawn

OPTIONS: dict[str, tuple[schema.PermissionOptionKind, str]] = {
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


class Questions:
    """The open questions of one session. `answer` gives a run the answer to a question by id, `say` says words, and
    `cancel` is called where the editor says that the turn is cancelled."""

    def __init__(
        self,
        editor: Editor,
        session: str,
        answer: Callable[[str, str], Awaitable[None]],
        say: Callable[[str], Awaitable[None]],
        cancel: Callable[[], None],
    ) -> None:
        self._editor, self._session = editor, session
        self._answer, self._say, self._cancel = answer, say, cancel
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
        try:
            answer = await (self._form(asked) if is_form else self._choice(asked))
        except Unanswered:
            await self._say(f"{asked.text}\n{IN_WORDS[asked.purpose]}")
            return  # The run waits, also for an answer on another surface.
        if answer is None:
            self._cancel()
            return
        self._open.pop(asked.question, None)
        await self._answer(asked.question, answer)

    async def _choice(self, asked: Asked) -> str | None:
        call = asked.question.partition(f".{asked.purpose}")[0]
        return await self.choose(call, asked.text, asked.choices)

    async def choose(
        self,
        call: str,
        text: str,
        choices: Sequence[str],
        named: dict[str, tuple[schema.PermissionOptionKind, str]] = OPTIONS,
    ) -> str | None:
        """Have the person choose; None where the editor says that the turn is cancelled. Raises `Unanswered`."""
        options = []
        for choice in choices:
            kind, name = named.get(choice, ("allow_once", choice))
            options.append(schema.PermissionOption(option_id=choice, name=name, kind=kind))
        title = text.partition("\n")[0][:LONGEST_TITLE]
        update = schema.ToolCallUpdate(tool_call_id=call, title=title, status="pending", content=[shown(text)])
        request = schema.RequestPermissionRequest(session_id=self._session, tool_call=update, options=options)
        outcome = (await self._editor.ask(PERMISSION, request, schema.RequestPermissionResponse)).outcome
        if isinstance(outcome, schema.DeniedOutcome):
            return None
        return outcome.option_id if outcome.option_id in choices else "deny"

    async def _form(self, asked: Asked) -> str | None:
        fields = asked.fields or (Field(name=ANSWER, choices=asked.choices, required=True),)
        properties = {field.name: _property(field) for field in fields}
        required = [field.name for field in fields if field.required]
        form = {"type": "object", "properties": properties, "required": required}
        request = schema.CreateFormSessionElicitationRequest(
            session_id=self._session,
            tool_call_id=asked.question.partition(".clarify")[0],
            message=asked.text,
            mode="form",
            requested_schema=schema.ElicitationSchema.model_validate(form),
        )
        given = await self._editor.ask(ELICITATION, request, FormAnswer)
        content = given.content or {}
        match given.action:
            case "accept" if asked.fields:
                return json.dumps({name: value for name, value in content.items() if name in properties})
            case "accept" if content.get(ANSWER):
                return str(content[ANSWER])
            case "accept" | "decline":
                return DECLINE
            case _:
                return None


def _property(field: Field) -> dict[str, Any]:
    """A field as a property of a form's schema."""
    found: dict[str, Any] = {"title": field.title or field.name}
    if field.default:
        found["default"] = json.loads(field.default)
    named = list(zip(field.choices, field.labels or field.choices, strict=False))
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
