"""Schemas of the API's response bodies: OpenAI's objects and our own."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from hermes_agent.api.requests import InputFile, InputImage, InputText


class PromptDetails(msgspec.Struct, kw_only=True):
    """How many input tokens were read from the provider's cache."""

    cached_tokens: int = 0


class CompletionDetails(msgspec.Struct, kw_only=True):
    """How many output tokens were reasoning."""

    reasoning_tokens: int = 0


class ChatUsage(msgspec.Struct, kw_only=True):
    """Token usage of all model calls of the run, as the provider counted it."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class ResponseUsage(msgspec.Struct, kw_only=True):
    """Token usage, as the responses API writes it."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_details: PromptDetails
    output_tokens_details: CompletionDetails


class Question(msgspec.Struct, kw_only=True):
    """The question that a run waits with."""

    id: str
    text: str
    choices: tuple[str, ...]
    purpose: Literal["approval", "clarify"]


class Run(msgspec.Struct, kw_only=True):
    """A run: from a message to its reply. `status` is `waiting` while `question` waits for an answer; `notices` are
    further notices for the person."""

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
    """The assistant's message."""

    content: str
    role: Literal["assistant"] = "assistant"
    refusal: str | None = None


class Choice(msgspec.Struct, kw_only=True):
    """The only choice of a chat completion."""

    message: ChatAnswer
    finish_reason: Literal["stop", "length"]
    index: int = 0
    logprobs: None = None


class ChatCompletion(msgspec.Struct, kw_only=True):
    """A chat completion; `hermes` is its run."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    hermes: Run
    object: Literal["chat.completion"] = "chat.completion"


class Delta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The new content of a chunk."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(msgspec.Struct, kw_only=True):
    """The only choice of a chunk, with its new content."""

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
    """A text part of a response's message."""

    text: str
    type: Literal["output_text"] = "output_text"
    annotations: list[Any] = []
    logprobs: list[Any] = []


class OutputMessage(msgspec.Struct, kw_only=True):
    """Output item of a Responses API response: the assistant's message."""

    id: str
    content: list[OutputWords]
    status: Literal["in_progress", "completed", "incomplete"] = "completed"
    role: Literal["assistant"] = "assistant"
    type: Literal["message"] = "message"


class ResponseError(msgspec.Struct, kw_only=True):
    """Why a response failed."""

    code: str
    message: str


class Incomplete(msgspec.Struct, kw_only=True):
    """Why a response is incomplete."""

    reason: str


class Response(msgspec.Struct, kw_only=True):
    """A response; its id identifies the session and the message that it answers, and does not expire."""

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


class InputMessage(msgspec.Struct, kw_only=True):
    """Input item of a Responses API response: the user's message that it answers."""

    id: str
    content: list[InputText | InputImage | InputFile]
    status: Literal["completed"] = "completed"
    role: Literal["user"] = "user"
    type: Literal["message"] = "message"


class InputList(msgspec.Struct, kw_only=True):
    """The input of a response: one message; empty until its run starts."""

    data: list[InputMessage]
    first_id: str | None = None
    last_id: str | None = None
    has_more: bool = False
    object: Literal["list"] = "list"


class ModelFacts(msgspec.Struct, kw_only=True):
    """A name allowed as `model`."""

    id: str
    created: int = 0
    owned_by: str = "hermes"
    object: Literal["model"] = "model"


class ModelList(msgspec.Struct, kw_only=True):
    """The names allowed as `model`."""

    data: list[ModelFacts]
    object: Literal["list"] = "list"


class SessionFacts(msgspec.Struct, kw_only=True):
    """A session (conversation) with its metadata."""

    id: str
    title: str
    surface: str
    model: str
    workspace: str
    principal: str
    parent: str
    created: float
    updated: float
    object: Literal["session"] = "session"


class SessionList(msgspec.Struct, kw_only=True):
    """Sessions, most recently used first; `next` is the `before` of the next page."""

    data: list[SessionFacts]
    next: str | None = None
    object: Literal["list"] = "list"


class MessageFacts(msgspec.Struct, kw_only=True):
    """A message or reply: author, time, text, and its number in the log."""

    number: int
    at: float
    role: Literal["user", "assistant"]
    text: str
    run: str


class MessageList(msgspec.Struct, kw_only=True):
    """Messages in a part of a session's log; `last` is the `after` of the next page."""

    data: list[MessageFacts]
    last: int
    object: Literal["list"] = "list"


class EventList(msgspec.Struct, kw_only=True):
    """Events of a session's log, as the manual's page on events has them; `last` is the `after` of the next page."""

    data: list[Any]
    last: int
    object: Literal["list"] = "list"


class HitFacts(msgspec.Struct, kw_only=True):
    """A search hit: a message."""

    session: str
    number: int
    at: float
    role: str
    snippet: str


class HitList(msgspec.Struct, kw_only=True):
    """Search hits, best match first."""

    data: list[HitFacts]
    object: Literal["list"] = "list"


class SkillFacts(msgspec.Struct, kw_only=True):
    """A skill."""

    name: str
    description: str
    layer: str


class SkillList(msgspec.Struct, kw_only=True):
    """The skills."""

    data: list[SkillFacts]
    object: Literal["list"] = "list"


class Health(msgspec.Struct, kw_only=True):
    """Health of the server; `reasons` say what fails."""

    status: Literal["ok", "failing"]
    version: str
    reasons: list[str] = []


class Removed(msgspec.Struct, kw_only=True):
    """Confirms a deletion."""

    id: str
    deleted: bool = True


class ResponseRemoved(Removed, kw_only=True):
    """Confirms the deletion of a response."""

    object: Literal["response"] = "response"


class Done(msgspec.Struct, kw_only=True):
    """Whether the action had any effect."""

    done: bool
