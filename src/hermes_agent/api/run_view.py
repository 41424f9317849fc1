"""View of a run for API clients: its state folded from events, and its public id."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Literal

from hermes_agent.api.response_schemas import (
    ChatUsage,
    CompletionDetails,
    PromptDetails,
    Question,
    ResponseUsage,
    Run,
)
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import (
    Answered,
    Asked,
    Entry,
    MessageTaken,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    Seen,
)
from hermes_agent.core.messages import Usage

RUN = "run"
RESPONSE = "resp"
CHAT = "chatcmpl"
ID = re.compile(r"(?:run|resp|chatcmpl)_(?P<session>\d{8}_\d{6}_[0-9a-f]{6})_(?P<row>[1-9]\d{0,17})")
Status = Literal["queued", "running", "waiting", "answered", "stopped", "limit", "failed"]
STATUS: dict[Outcome, Status] = {
    Outcome.ANSWERED: "answered",
    Outcome.STOPPED: "stopped",
    Outcome.LIMIT: "limit",
    Outcome.FAILED: "failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """Identifies a run: its session, and the inbox row of the message that started it."""

    session: str
    row: int

    def id(self, kind: str = RUN) -> str:
        """The public id."""
        return f"{kind}_{self.session}_{self.row}"


def ref_of(name: str) -> Ref | None:
    """Parse a public id; None if it is invalid."""
    found = ID.fullmatch(name)
    return Ref(session=found["session"], row=int(found["row"])) if found else None


@dataclass(slots=True, kw_only=True)
class RunView:
    """Current state of the run that took one message, folded from events. `at`: when it was taken (seconds since
    1970)."""

    ref: Ref
    run: str = ""
    status: Status = "queued"
    text: str = ""
    reason: str = ""
    error: str = ""
    model: str = ""
    question: Question | None = None
    usage: Usage = field(default_factory=Usage)
    notices: list[str] = field(default_factory=list)
    at: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status in STATUS.values()

    @property
    def rests(self) -> bool:
        """Whether no more events come by themselves: the run has ended or waits for a person."""
        return self.is_over or self.question is not None

    def take(self, seen: Seen | Entry) -> bool:
        """Apply one event; False if it belongs to another run."""
        event = seen.event
        if not self.run and isinstance(event, MessageTaken) and event.inbox == self.ref.row:
            self.run, self.status, self.at = seen.run, "running", seen.at
            return True
        if not self.run or seen.run != self.run or self.is_over:
            return False
        match event:
            case Replied():
                self._replied(event)
            case Asked(question=id_, text=text, choices=choices, purpose=purpose, fields=fields):
                self.question = Question(id=id_, text=text, choices=choices, purpose=purpose, fields=fields)
                self.status = "waiting"
            case Answered(question=id_) if self.question is not None and self.question.id == id_:
                self.question, self.status = None, "running"
            case Notice(text=text, level="news" | "warning" | "error"):
                self.notices.append(text)
            case RunEnded(outcome=outcome, text=text, reason=reason, error=error):
                self.status, self.question = STATUS[outcome], None
                self.text, self.reason, self.error = text, reason, error
            case _:
                pass
        return True

    def _replied(self, event: Replied) -> None:
        used, more = self.usage, event.usage
        self.usage = Usage(
            input=used.input + more.input,
            output=used.output + more.output,
            cached=used.cached + more.cached,
            cache_write=used.cache_write + more.cache_write,
            reasoning=used.reasoning + more.reasoning,
        )
        self.model = f"{event.provider}/{event.model}" if event.provider else self.model

    def facts(self) -> Run:
        """The run as an API object."""
        return Run(
            id=self.ref.id(),
            session=self.ref.session,
            status=self.status,
            text=self.text,
            reason=self.reason,
            error=self.error,
            model=self.model,
            question=self.question,
            usage=self.response_usage(),
            notices=self.notices,
        )

    def response_usage(self) -> ResponseUsage:
        """Token usage in the responses API's schema."""
        used = self.usage
        return ResponseUsage(
            input_tokens=used.input,
            output_tokens=used.output,
            total_tokens=used.input + used.output,
            input_tokens_details=PromptDetails(cached_tokens=used.cached),
            output_tokens_details=CompletionDetails(reasoning_tokens=used.reasoning),
        )

    def chat_usage(self) -> ChatUsage:
        """Token usage in the chat completions schema."""
        used = self.usage
        return ChatUsage(
            prompt_tokens=used.input,
            completion_tokens=used.output,
            total_tokens=used.input + used.output,
            prompt_tokens_details=PromptDetails(cached_tokens=used.cached),
            completion_tokens_details=CompletionDetails(reasoning_tokens=used.reasoning),
        )


def asked_for(story: RunView) -> str:
    """The text shown instead of a reply while the run waits for a person."""
    question = story.question
    assert question is not None  # It rests and is not over.
    choices = f" ({', '.join(question.choices)})" if question.choices else ""
    return f"{question.text}{choices}\n\nThe run waits. Answer with POST /v1/runs/{story.ref.id()}/answer."


def shown(story: RunView) -> str:
    """The reply of a run that ended, or the question it waits with."""
    return story.text if story.is_over else asked_for(story)
