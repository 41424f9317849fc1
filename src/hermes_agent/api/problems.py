"""Error responses in OpenAI's format: maps exceptions to status, code and message."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hermes_agent.core.errors import HermesError, StoreError, UnknownCard, UnknownSession
from hermes_agent.host.inbound.message import Refused, Response, written

JSON = "application/json"
AGAIN = {"retry-after": "1"}
FINAL = {"x-should-retry": "false"}
APOLOGY = "Something in this program broke; logs/hermes.log has the details."


class ErrorFacts(msgspec.Struct, kw_only=True):
    """The error in an error response: `message` for people, `code` for programs."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorAnswer(msgspec.Struct, kw_only=True):
    """Body of an error response of the HTTP API, in OpenAI's format."""

    error: ErrorFacts


TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
SERVER = 500


def type_of(status: int) -> str:
    """OpenAI's error type for a status."""
    if status in TYPES:
        return TYPES[status]
    return "server_error" if status >= SERVER else "invalid_request_error"


def bad(message: str, param: str | None = None, code: str = "") -> Refused:
    """A 400 error: invalid request."""
    return Refused(400, message, param=param, code=code)


def missing(message: str, code: str = "not_found") -> Refused:
    """A 404 error: missing, or not visible to this principal."""
    return Refused(404, message, code=code)


def busy(message: str) -> Refused:
    """A 429 error: too many requests."""
    return Refused(429, message, code="too_many_requests", headers=AGAIN)


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


def failed(error: str, text: str) -> Refused:
    """The error for a run that failed with this error class; `text` is the run's own message."""
    status, code = FAILURES.get(error, PROVIDER)
    return Refused(status, text, code=code, headers=FINAL)


def problem_of(error: Exception) -> Refused:
    """Map any exception to an error response."""
    match error:
        case Refused():
            return error
        case UnknownSession():
            return Refused(404, str(error), code="session_not_found")
        case UnknownCard():
            return Refused(404, str(error), code="card_not_found")
        case StoreError():
            return Refused(503, str(error), code="store_failed", headers=AGAIN)
        case HermesError():
            return Refused(409, str(error), code="refused", headers=FINAL)
        case _:
            said = error.strerror if isinstance(error, OSError) else ""
            told = f"The system refused something ({said}); logs/hermes.log has the details." if said else APOLOGY
            return Refused(500, told, code="internal_error")


def body_of(error: Refused) -> ErrorAnswer:
    """The JSON body of an error."""
    return ErrorAnswer(
        error=ErrorFacts(message=str(error), type=type_of(error.status), param=error.param, code=error.code)
    )


def answer_of(error: Exception) -> Response:
    """The whole response for a failed request."""
    problem = problem_of(error)
    return in_json(body_of(problem), problem.status, problem.headers)


def in_json(body: msgspec.Struct, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(status=status, headers={"content-type": JSON, **(headers or {})}, body=written(body))
