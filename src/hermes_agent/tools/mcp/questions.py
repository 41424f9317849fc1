"""What a server asks during a call: forms and addresses become questions to the person of that call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from hermes_agent.core.errors import HermesError
from hermes_agent.core.forms import Field, FieldType, WrongAnswer, checked
from hermes_agent.core.section import short_hash
from hermes_agent.core.tool import CallContext, Question

MOST_QUESTIONS = 20
"""Questions of one call; further ones are declined."""
MOST_FIELDS = 50
"""Fields of one form; one with more is declined."""
MOST_TEXT = 2_000
LARGEST_SCHEMA, DEEPEST = 100_000, 40
OPENED, DECLINED = "opened", "decline"
TYPES: Mapping[str, FieldType] = {"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}


Reply: TypeAlias = Mapping[str, Any]
"""A person's answer to a server, as the protocol has it: its `action`, and the `content` of a form."""
NO: Reply = {"action": "decline"}


class Exchange:
    """One call under way, and the questions that its server asks meanwhile. The call's own task puts them to the
    person, so that a stop of the run ends the waiting too."""

    def __init__(self, context: CallContext, seconds: float) -> None:
        self.context, self._seconds = context, seconds
        self.limit = asyncio.timeout(self._left)
        self._asked: asyncio.Queue[tuple[Question, asyncio.Future[str]]] = asyncio.Queue()
        self._open: list[asyncio.Future[str]] = []
        self._count, self._is_over = 0, False

    async def ask(self, question: Question) -> str:
        """Have the call's task ask it; empty where the person declined, nobody is there, or the call is over."""
        self._count += 1
        if self._is_over or self._count > MOST_QUESTIONS:
            return ""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open.append(answer)
        await self._asked.put((question, answer))
        return await answer

    @property
    def _left(self) -> float:
        left = self.context.seconds_left()
        return self._seconds if left is None else min(left, self._seconds)

    def extend(self) -> None:
        """The server's time to answer begins anew."""
        self.limit.reschedule(asyncio.get_running_loop().time() + self._left)

    async def serve(self) -> None:
        """Put the questions to the person, one after the other; the time that they need does not count."""
        try:
            await self._served()
        finally:
            self._is_over = True
            for answer in self._open:
                if not answer.done():
                    answer.set_result("")

    async def _served(self) -> None:
        loop, limit = asyncio.get_running_loop(), self.limit
        while True:
            question, answer = await self._asked.get()
            left = (limit.when() or loop.time()) - loop.time()
            limit.reschedule(None)
            try:
                said = await self.context.ask(question)
            except HermesError:  # Nobody is there, or the run is over.
                said = ""
            limit.reschedule(loop.time() + max(left, 1.0))
            if not answer.done():
                answer.set_result(said)


current: ContextVar[Exchange | None] = ContextVar("mcp_exchange", default=None)


async def ask_form(server: str, message: str, schema: Mapping[str, Any], exchange: Exchange) -> Reply:
    """Ask for the values of a form."""
    fields = fields_of(schema)
    if fields is None:
        return NO
    text = f"The MCP server {server} asks: {message[:MOST_TEXT]}"
    if not fields:
        question = Question(text=text, choices=("accept", DECLINED), about=short_hash(text))
        return {"action": "accept", "content": {}} if await exchange.ask(question) == "accept" else NO
    said = await exchange.ask(
        Question(text=text, fields=fields, about=short_hash(json.dumps(schema, default=str) + text))
    )
    return {"action": "accept", "content": json.loads(said)} if said else NO


async def ask_address(server: str, message: str, url: str, exchange: Exchange) -> Reply:
    """Show an address, which only the person opens."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or not url.isprintable():
        return NO
    text = (
        f"The MCP server {server} wants you to open a page of {parts.hostname}: {message[:MOST_TEXT]}\n{url}\n"
        "Open it yourself if you trust it, and answer here when you are done."
    )
    said = await exchange.ask(Question(text=text, choices=(OPENED, DECLINED), about=short_hash(text)))
    return {"action": "accept"} if said == OPENED else NO


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...] | None:
    """The fields of a form's schema; None for one that is no plain form."""
    properties, required = schema.get("properties", {}), _list(schema.get("required"))
    if not isinstance(properties, Mapping) or len(properties) > MOST_FIELDS or not is_bounded(schema):
        return None
    found = [_field(str(name), each, name in required) for name, each in properties.items()]
    return tuple(each for each in found if each) if all(found) else None


def _field(name: str, schema: object, required: bool) -> Field | None:
    if not isinstance(schema, Mapping):
        return None
    several = schema.get("type") == "array"
    items = schema.get("items", {}) if several else schema
    if not isinstance(items, Mapping):
        return None
    named = _list(items.get("oneOf") or items.get("anyOf"))
    choices, labels = tuple(_list(items.get("enum"))), tuple(map(str, _list(schema.get("enumNames"))))
    if named and all(isinstance(each, Mapping) and "const" in each for each in named):
        choices = tuple(each["const"] for each in named)
        labels = tuple(str(each.get("title", each["const"])) for each in named)
    kind: FieldType | None = TYPES.get(str(schema.get("type")))
    if choices and all(isinstance(each, str) for each in choices):
        kind = "choices" if several else "choice"
    title, more = str(schema.get("title") or name), str(schema.get("description") or "")
    field = kind and Field(
        name=name,
        title=f"{title} ({more})"[:MOST_TEXT] if more else title[:MOST_TEXT],
        type=kind,
        choices=choices if kind in ("choice", "choices") else (),
        labels=labels if len(labels) == len(choices) and kind in ("choice", "choices") else (),
        required=required,
    )
    with suppress(WrongAnswer):  # A default that is no value of the field is none.
        if field and (default := schema.get("default")) is not None:
            return replace(field, default=json.dumps(checked(field, default)))
    return field


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def is_bounded(schema: object) -> bool:
    """Whether a schema is small enough to be looked at; stops as soon as it is not."""
    left, size = [(schema, 0)], 0
    while left:
        value, depth = left.pop()
        size += len(value) if isinstance(value, str) else 4
        if depth > DEEPEST or size > LARGEST_SCHEMA:
            return False
        if isinstance(value, Mapping):
            size += sum(len(str(key)) for key in value)
            left += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, list | tuple):
            left += [(each, depth + 1) for each in value]
    return True
