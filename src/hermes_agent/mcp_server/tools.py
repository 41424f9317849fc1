"""Tools of the MCP server: conversations, events, messages, questions of runs, and `ask`, which is a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from hermes_agent.app.operations import chats, questions, runs, sessions
from hermes_agent.app.operations.access import Access, Argument, Kind, Noun, Verb
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, HermesError, NothingMore
from hermes_agent.core.events import (
    Answered,
    Asked,
    Event,
    MessageTaken,
    Notice,
    Replied,
    RunEnded,
    Seen,
    ToolProgress,
    ToolStarted,
)
from hermes_agent.core.messages import File, Image, Origin, Text, ToolSchema
from hermes_agent.core.shown import words_of
from hermes_agent.core.tool import Answer, CallContext, CallFacts, tool

if TYPE_CHECKING:
    from hermes_agent.app.system import System

    Mine: TypeAlias = Access[System]

SEND_SECONDS = 10.0
"""How long a sent message's receipt is waited for."""
MOST_WAIT, GLANCE = 300.0, 0.5
LARGEST_PAGE, LARGEST_NUMBER = 200, 2**62
LOCAL = frozenset({"import", "export", "attach", "next"})
"""Verbs for files of this machine, and other words for what a verb does."""
JSON_TYPES = {
    Kind.NUMBER: "integer",
    Kind.COUNT: "integer",
    Kind.SINCE: "number",
    Kind.SWITCH: "boolean",
    Kind.NAMES: "array",
}


READS, WRITES = (tool(effect=each, origin=Origin.TOOL) for each in (Effect.READS, Effect.WRITES))


class ConversationTools:
    """What a program sees and does of a person's conversations, by their rights."""

    def __init__(self, access: Mine) -> None:
        self._access = access
        # Another program's model writes here: its words count as a member's, also with the owner's key.
        self._origin = Origin.GUEST if access.who.standing is Standing.GUEST else Origin.MEMBER

    @READS
    async def conversations_list(self, limit: int = 20, before: str = "") -> str:
        """List conversations, the one used last first.

        Args:
            before: the last session of the page before
        """
        found = await sessions.list_sessions(self._access, _page(limit), before)
        return _json(found)

    @READS
    async def conversation_get(self, session: str) -> str:
        """Show one conversation."""
        return _json(await sessions.get_session(self._access, session))

    @READS
    async def messages_read(self, session: str, after: int = 0, limit: int = 50) -> str:
        """Read what was said in a conversation.

        Args:
            after: the number after which to read, `next` of the page before
        """
        after = _entry(after)
        entries = await sessions.read_log(self._access, session, after, _page(limit) * 10)
        said = sessions.messages_in(entries)
        shown = said[: _page(limit)]
        rest = shown[-1].number if len(said) > len(shown) else entries[-1].number if entries else after
        return _json({"messages": [_said(each) for each in shown], "next": rest})

    @READS
    async def attachments_fetch(self, session: str, number: int) -> Answer:
        """Get the pictures and files of a message.

        Args:
            number: the message's, as `messages_read` says it
        """
        entries = await sessions.read_log(self._access, session, _entry(number - 1), 1) if number > 0 else []
        parts = [part for each in sessions.messages_in(entries) for part in each.message.parts]
        files = tuple(part for part in parts if isinstance(part, Image | File))
        if not files:
            raise HermesError(f"The message {number} has no pictures or files.")
        return Answer(parts=files)

    @READS
    async def session_search(self, query: str, limit: int = 20) -> str:
        """Search messages: words, "quoted phrases", and -words to exclude."""
        found = await sessions.search_messages(self._access, query, _page(limit))
        return _json(
            [{"session": hit.session, "number": hit.number, "at": hit.at, "text": hit.snippet} for hit in found]
        )

    @READS
    async def events_poll(self, cursor: str = "", session: str = "", limit: int = 50) -> str:
        """Get what happened after a cursor: messages, replies, tool calls, questions, ends of runs.

        Args:
            cursor: of the answer before; without one nothing is returned but a cursor from now on
            session: only this one; give the same with its cursors
        """
        return _json(await self._events(cursor, session, limit))

    @READS
    async def events_wait(self, cursor: str, session: str = "", seconds: float = 30.0) -> str:
        """Wait until something happened after a cursor, as `events_poll` gives it; no events where nothing did."""
        clock = self._access.system.clock
        until = clock.monotonic() + wait_of(seconds)
        while True:
            found = await self._events(cursor, session, LARGEST_PAGE)
            if found["events"] or clock.monotonic() >= until:
                return _json(found)
            cursor = found["cursor"]
            await clock.sleep(GLANCE)

    async def _events(self, cursor: str, session: str, limit: int) -> dict[str, Any]:
        found = await runs.read_feed(self._access, cursor, session, _page(limit))
        shown = [each for seen in found.events if (each := _event(seen)) is not None]
        return {"events": shown, "cursor": found.cursor}

    @READS
    async def channels_list(self) -> str:
        """List the chat platforms to which messages can be sent."""
        return _json(await chats.list_channels(self._access))

    @WRITES
    async def messages_send(self, target: str, text: str) -> str:
        """Send a message to a chat.

        Args:
            target: CHANNEL:CHAT, or a channel that has a home chat
        """
        slot = await chats.send_text(self._access, target, text, SEND_SECONDS)
        return _json({"state": slot.state, "error": slot.error} if slot else {"state": "pending"})

    @READS
    async def permissions_list_open(self) -> str:
        """List the approvals and questions that runs wait with."""
        return _json(await questions.list_questions(self._access))

    @WRITES
    async def permissions_respond(self, session: str, question: str, answer: str) -> str:
        """Answer an approval or a question, as your person decided.

        Args:
            answer: one of its choices, free text, or the JSON object of its fields
        """
        await questions.answer_open(self._access, session, question, answer, self._origin)
        return "The run goes on."

    @WRITES
    async def ask(self, message: str, context: CallContext, session: str = "") -> Answer:
        """Have the agent do something, and wait for its reply. Cancelling the call stops the run.

        Args:
            session: the conversation to go on with; empty begins one
        """
        where = Conversation(platform=self._access.who.platform, chat_kind="name", chat=self._access.who.user)
        started = await runs.start_run(self._access, message, where, origin=self._origin, session=session)
        context.progress(f"session {started.session}")

        def show(event: Event) -> None:
            if isinstance(event, ToolStarted | ToolProgress):
                context.progress(event.summary if isinstance(event, ToolStarted) else event.text)

        try:
            last = await runs.follow_run(self._access, started, show)
        except NothingMore as error:
            return _replied(started.session, str(error), "refused")
        if isinstance(last, Asked):
            how = f"permissions_respond(session={started.session!r}, question={last.question!r}, answer=...)"
            if last.purpose == "approval" and (way := questions.way_to_approve(self._access)):
                how = f"they decide on another surface. {way}"
            choices = f" ({', '.join(last.choices)})" if last.choices else ""
            return _replied(started.session, f"{last.text}{choices}\n\nThe run waits for a person: {how}.", "waiting")
        return _replied(started.session, last.text, last.outcome, is_error=bool(last.error))


def _replied(session: str, text: str, state: str, *, is_error: bool = False) -> Answer:
    facts = Text(text=f"[{state}; session {session}]", origin=Origin.RUNTIME)
    return Answer(parts=(Text(text=text), facts), is_error=is_error)


def _page(limit: int) -> int:
    return max(1, min(limit, LARGEST_PAGE))


def wait_of(seconds: float) -> float:
    """The seconds that a call may wait, also where they are no number (NaN)."""
    return min(MOST_WAIT, seconds) if seconds > 0 else 0.0


def _entry(number: int) -> int:
    return max(0, min(number, LARGEST_NUMBER))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _said(said: sessions.SaidMessage) -> dict[str, Any]:
    files = [part.kind for part in said.message.parts if isinstance(part, Image | File)]
    text = words_of(said.message)
    found = {"number": said.number, "at": said.at, "run": said.run, "role": said.role, "text": text}
    return found | ({"attachments": files} if files else {})


def _event(seen: Seen) -> dict[str, Any] | None:
    event = seen.event
    match event:
        case MessageTaken(message=message) | Replied(message=message):
            text = words_of(message)
        case ToolStarted(summary=text) | Answered(answer=text):
            pass
        case Asked(text=text) | RunEnded(text=text) | Notice(text=text):
            pass
        case _:
            return None
    found = {"session": seen.session, "number": seen.number, "at": seen.at, "kind": event.kind, "text": text}
    return found | ({"question": event.question} if isinstance(event, Asked) else {})


def verb_tools(prefix: str, noun: Noun, access: Mine) -> list[VerbTool]:
    """A tool for each verb of a noun, such as `board_list`."""
    verbs = [each for each in noun.verbs if each.name not in LOCAL]
    return [VerbTool(name=f"{prefix}_{each.name}", verb=each, access=access) for each in verbs]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbTool:
    """A verb of an operation as a tool; implements `Tool`. Its arguments are the verb's."""

    name: str
    verb: Verb
    access: Mine
    needs = frozenset[Capability]()

    @property
    def schema(self) -> ToolSchema:
        arguments = self.verb.arguments
        parameters = {
            "type": "object",
            "properties": {each.name: _parameter(each) for each in arguments},
            "required": [each.name for each in arguments if each.default is None],
            "additionalProperties": False,
        }
        return ToolSchema(name=self.name, description=self.verb.help, parameters=parameters)

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:  # noqa: ARG002 - the Protocol's shape
        return CallFacts(effect=Effect.WRITES, paths=None, summary=self.name)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:  # noqa: ARG002 - as above
        verb = self.verb
        found = await verb.act(self.access, **_checked(verb.arguments, arguments))
        text = (verb.text(found) if found or not verb.nothing else "") or verb.nothing
        return Answer(parts=(Text(text=text),))


def _parameter(argument: Argument) -> dict[str, Any]:
    found: dict[str, Any] = {"type": JSON_TYPES.get(argument.kind, "string")}
    if argument.help:
        found["description"] = argument.help
    if argument.kind is Kind.NAMES:
        return {**found, "items": {"type": "string"}}
    return found if argument.default is None else {**found, "default": argument.default}


def _checked(wanted: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, with defaults. Raises `BadArguments`."""
    known = {each.name: each for each in wanted}
    if unknown := [name for name in given if name not in known]:
        raise BadArguments(f"There is no `{unknown[0][:80]}`. There are: {', '.join(known)}.")
    found = {name: each.default for name, each in known.items()} | dict(given)
    types = {"integer": int, "number": float, "boolean": bool, "string": str, "array": tuple[str, ...]}
    for name, each in known.items():
        kind = JSON_TYPES.get(each.kind, "string")
        try:
            found[name] = msgspec.convert(found[name] or () if kind == "array" else found[name], types[kind])
        except msgspec.ValidationError as error:
            raise BadArguments(f"`{name}` has to be given, as {kind}.") from error
    return found
