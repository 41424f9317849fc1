"""Exit codes of the `hermes` command."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from hermes_agent.core import errors
from hermes_agent.core.errors import (
    ConfigError,
    HomeError,
    InputTooLarge,
    LimitReached,
    NoModel,
    ProviderError,
    Stopped,
)
from hermes_agent.core.events import Outcome, RunEnded


class Exit(IntEnum):
    """Exit code of the `hermes` command, by how a run or command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_MODEL = 3
    CONFIG = 4
    PROVIDER = 5
    LIMIT = 6
    REFUSED = 7
    TOO_LARGE = 8
    STOPPED = 130

    @classmethod
    def of(cls, ended: RunEnded) -> Exit:
        """The exit code for a run's end."""
        match ended.outcome:
            case Outcome.ANSWERED:
                return cls.OK
            case Outcome.STOPPED:
                return cls.STOPPED
            case Outcome.LIMIT:
                return cls.LIMIT
            case Outcome.FAILED:
                return cls.of_error(getattr(errors, ended.error, Exception))

    @classmethod
    def of_error(cls, kind: type[BaseException]) -> Exit:
        """The exit code for an error class."""
        return next((code for known, code in BY_ERROR.items() if issubclass(kind, known)), cls.FAILED)


BY_ERROR: Mapping[type[BaseException], Exit] = {
    NoModel: Exit.NO_MODEL,
    ConfigError: Exit.CONFIG,
    HomeError: Exit.CONFIG,
    ProviderError: Exit.PROVIDER,
    LimitReached: Exit.LIMIT,
    InputTooLarge: Exit.TOO_LARGE,
    Stopped: Exit.STOPPED,
    KeyboardInterrupt: Exit.STOPPED,
}

MEANINGS: Mapping[Exit, str] = {
    Exit.OK: "done",
    Exit.FAILED: "it failed; the sentence on standard error says why",
    Exit.USAGE: "the command line is wrong",
    Exit.NO_MODEL: "there is no model to ask: `hermes setup`",
    Exit.CONFIG: "a setting is wrong, or the home cannot be read or written",
    Exit.PROVIDER: "the model's provider refused or failed",
    Exit.LIMIT: "a limit of turns, time, money or tokens was reached; `hermes -c` resumes",
    Exit.REFUSED: "a call was refused, and `--fail-on-refusal` was given",
    Exit.TOO_LARGE: "the input is too large for the model's window, and `--strict-input` was given",
    Exit.STOPPED: "stopped: by a person (Ctrl-C), or asked to end (SIGTERM, SIGHUP)",
}
