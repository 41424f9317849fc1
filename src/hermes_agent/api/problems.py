"""What a request gets that cannot be answered: OpenAI's error shape, with a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.exceptions import HTTPException

from hermes_agent.core.errors import HermesError, StoreError, UnknownSession

AGAIN = {"retry-after": "1"}
FINAL = {"x-should-retry": "false"}
APOLOGY = "Something in this program broke; logs/hermes.log has the details."


class ErrorFacts(msgspec.Struct, kw_only=True):
    """What went wrong: `message` for a person, `code` for a program."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorAnswer(msgspec.Struct, kw_only=True):
    """The body of every answer that is no success."""

    error: ErrorFacts


class Problem(HermesError):
    """A request that is answered with an error: its HTTP status, its facts, and headers."""

    def __init__(
        self, status: int, message: str, *, code: str = "", param: str | None = None, headers: Mapping[str, str] = {}
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.facts = ErrorFacts(message=message, type=type_of(status), param=param, code=code or None)

    @property
    def body(self) -> ErrorAnswer:
        """The answer's body."""
        return ErrorAnswer(error=self.facts)


TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
SERVER = 500


def type_of(status: int) -> str:
    """OpenAI's word for a kind of error."""
    if status in TYPES:
        return TYPES[status]
    return "server_error" if status >= SERVER else "invalid_request_error"


def bad(message: str, param: str | None = None, code: str = "") -> Problem:
    """A request that is wrong."""
    return Problem(400, message, param=param, code=code)


def missing(message: str, code: str = "not_found") -> Problem:
    """What was asked for is not there, or not for this person."""
    return Problem(404, message, code=code)


def busy(message: str) -> Problem:
    """Too much at once."""
    return Problem(429, message, code="too_many_requests", headers=AGAIN)


# A run that failed: the HTTP status and the code of the error's class.
FAILURES: Mapping[str, tuple[int, str]] = {
    "NoModel": (503, "no_model"),
    "RateLimited": (429, "provider_rate_limited"),
    "ContextTooLong": (400, "context_length_exceeded"),
    "ModelNotFound": (404, "model_not_found"),
    "ContentRefused": (400, "content_refused"),
    "LimitReached": (402, "limit_reached"),
    "TimedOut": (504, "provider_timed_out"),
    "Stalled": (504, "provider_timed_out"),
    "HermesError": (500, "internal_error"),
}
PROVIDER = (502, "provider_failed")


def failed(error: str, text: str) -> Problem:
    """A run that ended with an error of this class; the sentence is the run's own."""
    status, code = FAILURES.get(error, PROVIDER)
    return Problem(status, text, code=code, headers=FINAL)


def problem_of(error: Exception) -> Problem:
    """An error as the answer that a client gets."""
    match error:
        case Problem():
            return error
        case HTTPException(status_code=status):
            words = {404: "There is nothing at this address.", 405: "This address takes another method."}
            return Problem(status, words.get(status, "The request cannot be answered."), headers=error.headers or {})
        case UnknownSession():
            return Problem(404, str(error), code="session_not_found")
        case StoreError():
            return Problem(503, str(error), code="store_failed", headers=AGAIN)
        case HermesError():
            return Problem(409, str(error), code="refused", headers=FINAL)
        case _:
            said = error.strerror if isinstance(error, OSError) else ""
            told = f"The system refused something ({said}); logs/hermes.log has the details." if said else APOLOGY
            return Problem(500, told, code="internal_error")
