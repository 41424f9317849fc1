"""The error classes that packages share, below `HermesError`; the text of each is a sentence for a person.

HermesError
├── ConfigError                     a setting is wrong: file, line, nearest key
├── HomeError                       HERMES_HOME cannot be used
├── StoreError
│   ├── LostLease                   somebody else owns the session now; stop writing
│   ├── LogBehind                   the database has lost the end of a session's log
│   ├── DatabaseTooNew              made by a later version
│   ├── DatabaseUnreachable         no connection, locked for too long, or a network file system
│   ├── DatabaseInUse               another home keeps its rows there
│   ├── DatabaseDamaged             not a database, or it fails its own check
│   ├── DiskFull
│   └── UnknownSession
├── ProviderError                   a model call failed: provider, model, route
│   ├── AuthRefused · OutOfCredit · RateLimited · Overloaded · ServerFailed · Unreachable · TimedOut · Stalled
│   ├── ContextTooLong · PayloadTooLarge · ModelNotFound · ContentRefused
│   └── MalformedReply · EmptyReply · BadRequest · ThinkingRefused
├── NoModel                         nothing to ask: no key, no local server
├── CassetteError                   a recording cannot be written, read or followed
│   └── RequestDiffers              what is asked now is not what was asked then
├── InputTooLarge                   a message takes too much of the window, and may not be kept as a file
├── LimitReached                    turns, time, money or tokens; the run can be continued
│   └── GoingInCircles              calls repeat what does not help
├── ToolError                       an answer for the model
│   ├── UnknownTool · BadArguments · Refused · Unapproved · Protected · StaleWrite · OutcomeUnknown
├── UnknownJob                      no scheduled job has this id or name
├── UnknownCard                     no card of the board has this id
├── NothingMore                     what is waited for has ended
└── Stopped                         a person said stop
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_agent.core.messages import Quoted


class HermesError(Exception):
    """Base class of this program's errors; the text is a sentence for a person."""


class ConfigError(HermesError):
    """A setting is wrong."""


class HomeError(HermesError):
    """HERMES_HOME cannot be read or written."""


class StoreError(HermesError):
    """The database failed; committed data is not lost."""


class LostLease(StoreError):
    """Another worker took over the lane: this lease may not write any more."""


class LogBehind(StoreError):
    """The database returned to an earlier state (a failover or restore): the session's log ends at number `last`,
    before the last event that its writer committed. -1: the lane's claim is gone too."""

    def __init__(self, message: str, last: int = -1) -> None:
        super().__init__(message)
        self.last = last


class DatabaseTooNew(StoreError):
    """The database was made by a later version of this program."""


class DatabaseUnreachable(StoreError):
    """No connection to the database, or it stayed locked, or its place cannot hold one."""


class DatabaseInUse(StoreError):
    """Another home uses the database, and the two are not configured as one household."""


class DatabaseDamaged(StoreError):
    """The file is not a database or fails its integrity check."""


class DiskFull(StoreError):
    """The disk has no room for a commit."""


class UnknownSession(StoreError):
    """No session has this id or title."""


class ProviderError(HermesError):
    """A model call failed. `provider`, `model` name the route that failed and `credential` the name (never the value)
    of the key that was used; `status` is the HTTP status or 0; `retry_after` is in seconds where the provider gave one.
    `partial` is the text that had arrived before a stream broke."""

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        model: str = "",
        status: int = 0,
        retry_after: float | None = None,
        partial: str = "",
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.credential = ""
        self.status = status
        self.retry_after = retry_after
        self.partial = partial


class AuthRefused(ProviderError):
    """The provider refused the key: wrong, revoked, or not allowed to use this model."""


class OutOfCredit(ProviderError):
    """The provider's account has no money left."""


class RateLimited(ProviderError):
    """Too many requests to the provider; `retry_after` is set where it said when to come back."""

    retryable = True


class Overloaded(ProviderError):
    """The provider is busy (503, 529)."""

    retryable = True


class ServerFailed(ProviderError):
    """The provider failed (5xx)."""

    retryable = True


class Unreachable(ProviderError):
    """No connection to the provider, or the connection was cut."""

    retryable = True


class TimedOut(ProviderError):
    """The provider did not answer in time."""

    retryable = True


class Stalled(ProviderError):
    """A stream from the provider was open but brought no content for too long."""

    retryable = True


class ContextTooLong(ProviderError):
    """The request is longer than the model's window."""


class PayloadTooLarge(ProviderError):
    """The request body is larger than the provider takes (413)."""


class ModelNotFound(ProviderError):
    """The provider knows no model of this name."""


class ContentRefused(ProviderError):
    """The provider's policy refused the request or the reply."""


class MalformedReply(ProviderError):
    """The provider's answer violates its protocol."""

    retryable = True


class EmptyReply(ProviderError):
    """The model's answer has neither text nor tool calls."""

    retryable = True


class BadRequest(ProviderError):
    """The provider refused the request as ill-formed (400)."""


class ThinkingRefused(ProviderError):
    """The provider refuses its own signed thinking, or a response that it stored: the request is sent once more
    without them."""

    retryable = True


class NoModel(HermesError):
    """There is no model to ask: no key and no local server."""


class CassetteError(HermesError):
    """A recording cannot be written, read or replayed."""


class RequestDiffers(CassetteError):
    """A replay requested something else than the recording has next; the message names the first difference."""


class InputTooLarge(HermesError):
    """A message takes too much of the model's window, and may not be moved to a file (`--strict-input`)."""


class LimitReached(HermesError):
    """A limit ended the run, which can be continued. `limit` names its kind, e.g. `money limit`; the text names the
    setting."""

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class GoingInCircles(LimitReached):
    """The run repeats calls that do not help; the settings under `guardrails` set the limits."""

    def __init__(self, message: str) -> None:
        super().__init__(message, limit="guardrail")


class ToolError(HermesError):
    """A tool call failed; the model reads `kind`, the sentence, the `hint`, and what is `quoted`. Sentence and hint
    have the label that the call's facts name; `quoted` has its own."""

    kind = "failed"

    def __init__(self, message: str, *, hint: str = "", quoted: Quoted | None = None) -> None:
        super().__init__(f"{message} {quoted.text}" if quoted else message)
        self.message, self.hint, self.quoted = message, hint, quoted


class UnknownTool(ToolError):
    """The model asked for a tool that does not exist here."""

    kind = "unknown_tool"


class BadArguments(ToolError):
    """The arguments do not fit the tool's schema; the message holds the schema path."""

    kind = "bad_arguments"


class Refused(ToolError):
    """The tool call is not allowed: permission denies it, or its target may not be changed."""

    kind = "refused"


class Unapproved(Refused):
    """The call needs a person's yes, and no person is here."""

    kind = "unapproved"


class Protected(Refused):
    """A person wrote or pinned the target: the agent may only propose this change."""


class StaleWrite(ToolError):
    """The file changed since it was read."""

    kind = "stale_write"


class OutcomeUnknown(ToolError):
    """A tool call was interrupted and its outcome is unknown, so it is not retried."""

    kind = "interrupted"


class UnknownJob(HermesError):
    """No scheduled job of this person has this id or name."""


class UnknownCard(HermesError):
    """No card of the board has this id."""


class NothingMore(HermesError):
    """End of a stream: nothing more will arrive."""


class Stopped(HermesError):
    """A person stopped the run."""
