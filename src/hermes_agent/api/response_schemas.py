"""Schemas of the HTTP API's response bodies: OpenAI's objects, and ours for runs, sessions, search and health."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, Literal, get_type_hints

import msgspec

from hermes_agent.app.operations.sessions import SessionRecord
from hermes_agent.app.operations.skills import SkillHeader
from hermes_agent.core.forms import Field


def list_of(name: str, kind: Any, doc: str) -> Any:  # noqa: ANN401  a schema that is made here
    """The schema of a list of such objects."""
    fields: list[Any] = [("data", GenericAlias(list, (kind,))), ("object", Literal["list"], "list")]
    return msgspec.defstruct(name, fields, kw_only=True, namespace={"__doc__": doc})


def part_of(record: type, name: str, fields: str, doc: str, **more: tuple[Any, Any]) -> Any:  # noqa: ANN401  the same
    """The schema of these fields of a record; `more` are those with a value of their own."""
    kinds = get_type_hints(record)
    own = [(field, kinds[field]) for field in fields.split()]
    given = [(field, *each) for field, each in more.items()]
    return msgspec.defstruct(name, [*own, *given], kw_only=True, namespace={"__doc__": doc})


class PromptDetails(msgspec.Struct, kw_only=True):
    """Part of a token usage: how many input tokens the provider read from its cache."""

    cached_tokens: int = 0


class CompletionDetails(msgspec.Struct, kw_only=True):
    """Part of a token usage: how many output tokens were reasoning."""

    reasoning_tokens: int = 0


class ChatUsage(msgspec.Struct, kw_only=True):
    """Token usage of a run in a chat completion: the sum over the model replies of the run."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class ResponseUsage(msgspec.Struct, kw_only=True):
    """Token usage of a run in a Responses API object or a run object: the sum over the model replies of the run."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_details: PromptDetails
    output_tokens_details: CompletionDetails


class Question(msgspec.Struct, kw_only=True):
    """A question to the person for which a run waits: approval of a tool call, or a clarification. `fields` are those
    of a form: words answer the first, a JSON object all."""

    id: str
    text: str
    choices: tuple[str, ...]
    purpose: Literal["approval", "clarify"]
    fields: tuple[Field, ...] = ()


class Run(msgspec.Struct, kw_only=True):
    """A run of the agent: from a message to its reply. `status` is `waiting` while `question` waits for an answer;
    `notices` are further notices for the person."""

    id: str
    session: str
    status: Literal["queued", "running", "waiting", "answered", "stopped", "limit", "failed"]
    text: str = ""
    reason: str = ""
    error: str = ""
    model: str = ""
    question: Question | None = None
    usage: ResponseUsage
    notices: list[str] = []
    object: Literal["run"] = "run"


class ChatAnswer(msgspec.Struct, kw_only=True):
    """The assistant's message in a chat completion."""

    content: str
    role: Literal["assistant"] = "assistant"
    refusal: str | None = None


class Choice(msgspec.Struct, kw_only=True):
    """The single choice of a chat completion: the assistant's message and why it ended."""

    message: ChatAnswer
    finish_reason: Literal["stop", "length"]
    index: int = 0
    logprobs: None = None


class ChatCompletion(msgspec.Struct, kw_only=True):
    """A chat completion that is not streamed; `hermes` is the run behind it."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    hermes: Run
    object: Literal["chat.completion"] = "chat.completion"


class Delta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """New content in a chunk of a streamed chat completion: the role in the first chunk, text in the others."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(msgspec.Struct, kw_only=True):
    """The single choice in a chunk of a streamed chat completion: new content, and in the last one why it ended."""

    delta: Delta
    finish_reason: Literal["stop", "length"] | None = None
    index: int = 0
    logprobs: None = None


class ChatChunk(msgspec.Struct, kw_only=True):
    """One chunk of a streamed chat completion."""

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: ChatUsage | None = None
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"


class OutputWords(msgspec.Struct, kw_only=True):
    """Text part of the assistant's message in a Responses API object."""

    text: str
    type: Literal["output_text"] = "output_text"
    annotations: list[Any] = []
    logprobs: list[Any] = []


class OutputMessage(msgspec.Struct, kw_only=True):
    """The assistant's message in the output of a Responses API object."""

    id: str
    content: list[OutputWords]
    status: Literal["in_progress", "completed", "incomplete"] = "completed"
    role: Literal["assistant"] = "assistant"
    type: Literal["message"] = "message"


class ResponseError(msgspec.Struct, kw_only=True):
    """Why the run behind a Responses API object failed."""

    code: str
    message: str


class Incomplete(msgspec.Struct, kw_only=True):
    """Why a Responses API object is incomplete: the limit that its run reached."""

    reason: str


class Response(msgspec.Struct, kw_only=True):
    """A Responses API object: a run with its reply. Its id names the session and the message that the run answers."""

    id: str
    created_at: int
    model: str
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    output: list[OutputMessage]
    usage: ResponseUsage | None = None
    error: ResponseError | None = None
    incomplete_details: Incomplete | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = True
    tool_choice: str = "auto"
    tools: list[Any] = []
    temperature: float | None = None
    top_p: float | None = None
    store: bool = True
    background: bool = False
    hermes: Run
    object: Literal["response"] = "response"


class ModelFacts(msgspec.Struct, kw_only=True):
    """One name that a request may give as `model`."""

    id: str
    created: int = 0
    owned_by: str = "hermes"
    object: Literal["model"] = "model"


SessionFacts = part_of(
    SessionRecord,
    "SessionFacts",
    "id title surface model workspace principal parent created updated",
    "A session (one stored conversation) with its metadata.",
    object=(Literal["session"], "session"),
)


class SessionList(msgspec.Struct, kw_only=True):
    """A page of sessions, most recently used first; `next` is the `before` of the next page."""

    data: list[SessionFacts]  # type: ignore[valid-type]  # a schema that is made above
    next: str | None = None
    object: Literal["list"] = "list"


class ChildFacts(msgspec.Struct, kw_only=True):
    """An agent that a run gave a goal. `status` is its outcome (`answered`, `stopped`, `limit`, `failed`, `lost`) once
    it has ended; then `report` is what its parent was told."""

    session: str
    goal: str
    role: Literal["leaf", "orchestrator"]
    isolation: Literal["task", "worktree", "process"]
    status: str
    folder: str
    branch: str
    created: float
    ended: float | None = None
    report: str = ""
    object: Literal["agent"] = "agent"


ChildList = list_of("ChildList", ChildFacts, "The agents of a run, in the order of their calls.")


class MessageFacts(msgspec.Struct, kw_only=True):
    """A message of a session, by a user or the assistant: text, time, run, and its number in the session's log."""

    number: int
    at: float
    role: Literal["user", "assistant"]
    text: str
    run: str


class MessageList(msgspec.Struct, kw_only=True):
    """Messages in a part of a session's log, in log order; `last` is the `after` of the next page."""

    data: list[MessageFacts]
    last: int
    object: Literal["list"] = "list"


class EventList(msgspec.Struct, kw_only=True):
    """Events of a session's log, in the format described in the manual; `last` is the `after` of the next page."""

    data: list[Any]
    last: int
    object: Literal["list"] = "list"


class HitFacts(msgspec.Struct, kw_only=True):
    """A search hit: a message of a session, shown as a snippet around the match."""

    session: str
    number: int
    at: float
    role: str
    snippet: str


HitList = list_of("HitList", HitFacts, "Search hits, best match first.")
SkillFacts = part_of(
    SkillHeader,
    "SkillFacts",
    "name description layer",
    "A skill of the agent: name, description and the layer that it comes from.",
)
SkillList = list_of("SkillList", SkillFacts, "The skills of the agent that the caller may see.")
ModelList = list_of("ModelList", ModelFacts, "The names that a request may give as `model`.")


class Health(msgspec.Struct, kw_only=True):
    """Health of the server; `reasons` say what fails."""

    status: Literal["ok", "failing"]
    version: str
    reasons: list[str] = []


class Removed(msgspec.Struct, kw_only=True):
    """Confirmation that the object with this id was deleted."""

    id: str
    deleted: bool = True


class ResponseRemoved(Removed, kw_only=True):
    """Confirmation that a Responses API object was deleted."""

    object: Literal["response"] = "response"


class Done(msgspec.Struct, kw_only=True):
    """Result of an action such as stopping a run; `done` is false if there was nothing to do."""

    done: bool
