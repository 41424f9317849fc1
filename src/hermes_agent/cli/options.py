"""Global options of `hermes` in one table, with a fast parser that does not import click."""

from __future__ import annotations

from collections.abc import Sequence
from getopt import GetoptError, getopt
from typing import TYPE_CHECKING, Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import CassetteError
from hermes_agent.host.late import late

if TYPE_CHECKING:
    from hermes_agent.app.intake import Spooled
    from hermes_agent.replay.recorder import Recorder
    from hermes_agent.replay.replayer import Player

EVERYTHING = "*"
"""The glob that every call matches."""
RESULT = "--json=result"
"""Click would take it for a value of `--json`, which has none."""
NEVER = "\0"
"""What no argument holds."""
UNEQUAL = f"--result{NEVER}"
"""The other spelling of `RESULT`, as getopt takes its sign for that of a value too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Definition of one global option of `hermes`. `field` is its attribute in `Invocation`; without a `metavar` it is
    a switch; `repeats`: may be given several times."""

    field: str
    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    repeats: bool = False


OPTIONS = (
    Option(field="profile", flags=("-p", "--profile"), metavar="NAME", help="Use the profile's own home."),
    Option(
        field="question",
        flags=("-z", "--oneshot"),
        metavar="PROMPT",
        help="Answer one question: only the reply goes to standard output. Piped input joins the prompt.",
    ),
    Option(field="json", flags=("--json",), help="With a question: every event as a line of JSON."),
    Option(
        field="result",
        flags=(RESULT, "--json-result"),
        help=f"With a question ({RESULT}): one JSON object at its end, with reply, refusals, files, cost and session.",
    ),
    Option(
        field="files",
        flags=("--file",),
        metavar="PATH",
        repeats=True,
        help="Give a file with the question, repeatable.",
    ),
    Option(
        field="strict_input",
        flags=("--strict-input",),
        help="Refuse input that is too large for the model's window, instead of saving it as a file.",
    ),
    Option(
        field="allow",
        flags=("--allow",),
        metavar="GLOB",
        repeats=True,
        help="Allow calls that match without asking, such as 'git push *'; repeatable.",
    ),
    Option(
        field="yolo", flags=("--yolo",), help="Allow every call without asking, except those that are never allowed."
    ),
    Option(
        field="fail_on_refusal",
        flags=("--fail-on-refusal",),
        help="With a question: exit with 7 where a call was refused.",
    ),
    Option(field="go_on", flags=("-c", "--continue"), help="Continue the latest session of this folder."),
    Option(field="resume", flags=("-r", "--resume"), metavar="SESSION", help="Continue a session, by its id or title."),
    Option(field="model", flags=("-m", "--model"), metavar="MODEL", help="Ask this model, as vendor/model."),
    Option(
        field="record", flags=("--record",), metavar="FILE", help="Record what comes from outside into this new file."
    ),
    Option(
        field="replay",
        flags=("--replay",),
        metavar="FILE",
        help="Answer from a recording: no model is asked, no tool runs.",
    ),
    Option(field="nearest", flags=("--nearest",), help="With --replay: accept the most similar recorded exchange."),
    Option(
        field="live_from",
        flags=("--live-from",),
        metavar="STEP",
        help="With --replay: from this step on, ask the real model and run tools.",
    ),
    Option(
        field="skills", flags=("-s", "--skills"), metavar="NAMES", help="Start with these skills, NAME or NAME,NAME."
    ),
    Option(field="quiet", flags=("-q", "--quiet"), help="Show replies only, no progress."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The global options of one `hermes` command line, parsed. `question` is None without `-z`; `prompt` is its text,
    `piped` the content of standard input: text, or a file if it is binary or too large.

    `go_on` continues the folder's latest session, `resume` the one with that id or title; with an empty prompt, either
    resumes an interrupted run.
    """

    profile: str = ""
    question: str | None = None
    json: bool = False
    result: bool = False
    files: tuple[str, ...] = ()
    strict_input: bool = False
    allow: tuple[str, ...] = ()
    yolo: bool = False
    fail_on_refusal: bool = False
    piped: str | Spooled = ""
    go_on: bool = False
    resume: str = ""
    model: str = ""
    record: str = ""
    replay: str = ""
    nearest: bool = False
    live_from: str = ""
    quiet: bool = False
    skills: str = ""

    @property
    def is_taped(self) -> bool:
        """Whether the process is recorded or replayed."""
        return bool(self.record or self.replay or self.nearest or self.live_from)

    @property
    def allowed(self) -> tuple[str, ...]:
        """Globs of the calls that need no approval."""
        return (*self.allow, EVERYTHING) if self.yolo else self.allow

    @property
    def prompt(self) -> str:
        """The text of the question."""
        return self.question or ""


def parse(arguments: Sequence[str]) -> Invocation | None:
    """Parse the options; None if the line holds anything else (a subcommand, `--help`, a mistake), which click
    handles."""
    by_flag = {flag.replace(RESULT, UNEQUAL): option for option in OPTIONS for flag in option.flags}
    names = [(flag.lstrip("-"), len(flag) > 2, bool(option.metavar)) for flag, option in by_flag.items()]
    short = "".join(f"{name}{':' * takes}" for name, is_long, takes in names if not is_long)
    # Beside its twin no beginning of an option is understood as that option.
    long = [each for name, is_long, takes in names if is_long for each in (f"{name}{'=' * takes}", f"{name}{NEVER}")]
    try:
        found, rest = getopt([UNEQUAL if word == RESULT else word for word in arguments], short, long)
    except GetoptError:
        return None
    values: dict[str, Any] = {}
    for flag, value in found:
        option, said = by_flag[flag], value.replace(UNEQUAL, RESULT)
        more = (*values.get(option.field, ()), said) if option.repeats else said
        values[option.field] = more if option.metavar else True
    return None if rest else Invocation(**values)


TAPE = "hermes_agent.replay.recorder:tape"


def recording_of(invocation: Invocation) -> Recorder | Player | None:
    """The recorder or player for these options; None without any. Raises `CassetteError`."""
    if not invocation.is_taped:
        return None
    tape: Recorder | Player | None = late(TAPE)(
        record=invocation.record,
        replay=invocation.replay,
        nearest=invocation.nearest,
        live_from=step_of(invocation.live_from),
    )
    return tape


def step_of(text: str) -> int | None:
    """Parse a step number, from 1; None if empty. Raises `CassetteError`."""
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise CassetteError(f"`{text}` is not a step: steps are numbered from 1, `hermes replay FILE` shows them.")
    return int(text)
