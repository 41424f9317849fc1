"""Errors as lines hold them, and back."""

from __future__ import annotations

from hermes_agent.core import errors
from hermes_agent.core.errors import (
    CassetteError,
    GoingInCircles,
    HermesError,
    LimitReached,
    ProviderError,
    ToolError,
    unexpected,
)
from hermes_agent.replay.cassette.lines import Raised


class RecordedToolError(ToolError):
    """A tool's failure, as it was recorded."""

    def __init__(self, raised: Raised) -> None:
        super().__init__(raised.text, hint=raised.hint)
        self.kind = raised.tool_kind


def noted(error: Exception) -> Raised:
    """The error as a line holds it. A defect of a tool reads as the loop tells it to the model."""
    name, notes = type(error).__name__, tuple(getattr(error, "__notes__", ()))
    match error:
        case ProviderError():
            return Raised(
                error=name,
                text=str(error),
                provider=error.provider,
                model=error.model,
                status=error.status,
                retry_after=error.retry_after,
                partial=error.partial,
                notes=notes,
            )
        case ToolError():
            return Raised(error=name, text=str(error), hint=error.hint, tool_kind=error.kind, notes=notes)
        case LimitReached():
            return Raised(error=name, text=str(error), limit=error.limit, notes=notes)
        case HermesError():
            return Raised(error=name, text=str(error), tool_kind="failed", notes=notes)
        case _:
            return Raised(error="ToolError", text=str(unexpected(error)), tool_kind="failed")


def raised(noted: Raised) -> HermesError:
    """The error of a model or a run again, of the class that it had where there still is one."""
    kind: type[HermesError] = getattr(errors, noted.error, CassetteError)
    error: HermesError
    if issubclass(kind, ProviderError):
        error = kind(
            noted.text,
            provider=noted.provider,
            model=noted.model,
            status=noted.status,
            retry_after=noted.retry_after,
            partial=noted.partial,
        )
    elif issubclass(kind, LimitReached) and kind is not GoingInCircles:
        error = kind(noted.text, limit=noted.limit)
    else:
        error = kind(noted.text)
    for note in noted.notes:
        error.add_note(note)
    return error


def failed_call(noted: Raised) -> ToolError:
    """The failure of a tool call again."""
    kind = getattr(errors, noted.error, None)
    if isinstance(kind, type) and issubclass(kind, ToolError):
        error: ToolError = kind(noted.text, hint=noted.hint)
        return error
    return RecordedToolError(noted)
