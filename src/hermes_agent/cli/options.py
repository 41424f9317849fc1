"""The options that stand before any subcommand, in one table; the paths that must start fast read them here."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. `field` names where its value goes in `Invocation`; without a `metavar` it is a switch."""

    field: str
    flags: tuple[str, ...]
    help: str
    metavar: str = ""


OPTIONS = (
    Option(field="profile", flags=("-p", "--profile"), metavar="NAME", help="Use the profile's own home."),
    Option(
        field="question",
        flags=("-z", "--oneshot"),
        metavar="PROMPT",
        help="Answer one question: only the reply goes to standard output. What is piped in joins the prompt.",
    ),
    Option(field="json", flags=("--json",), help="With a question: every event as a line of JSON."),
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
    Option(field="nearest", flags=("--nearest",), help="With --replay: the most similar exchange instead of the same."),
    Option(
        field="live_from",
        flags=("--live-from",),
        metavar="STEP",
        help="With --replay: from this step on, ask the real model and run tools.",
    ),
    Option(
        field="skills", flags=("-s", "--skills"), metavar="NAMES", help="Begin with these skills, NAME or NAME,NAME."
    ),
    Option(field="quiet", flags=("-q", "--quiet"), help="Show replies only, no progress."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What the command line says. `question` is None where `-z` is not there; `prompt` is what to ask.

    `go_on` continues the folder's latest session, `resume` the one of that id or title; with an empty prompt either
    takes up a run that was interrupted.
    """

    profile: str = ""
    question: str | None = None
    json: bool = False
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
        """Whether the process is recorded or is a replay."""
        return bool(self.record or self.replay or self.nearest or self.live_from)

    @property
    def prompt(self) -> str:
        """The words of the question."""
        return self.question or ""


def parse(arguments: Sequence[str]) -> Invocation | None:
    """The options, or None where the line holds anything else: a subcommand, `--help`, a mistake. Click reads those."""
    by_flag = {flag: option for option in OPTIONS for flag in option.flags}
    values: dict[str, str | bool] = {}
    rest = list(arguments)
    while rest:
        read = _read(rest, by_flag)
        if read is None:
            return None
        values.update(read)
    return Invocation(**values)  # type: ignore[arg-type]  # the table says which field is a text and which a switch


def _read(rest: list[str], by_flag: dict[str, Option]) -> dict[str, str | bool] | None:
    """Take one word (and its value) off the front. None where it is no option of the table."""
    word = rest.pop(0)
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return _one(by_flag.get(flag), value if equals else None, rest)
    if not word.startswith("-") or word == "-":
        return None
    values: dict[str, str | bool] = {}
    letters = word[1:]
    while letters:
        option, letters = by_flag.get(f"-{letters[0]}"), letters[1:]
        attached = letters if option is not None and option.metavar and letters else None
        read = _one(option, attached, rest)
        if read is None:
            return None
        values.update(read)
        if option is not None and option.metavar:
            break
    return values


def _one(option: Option | None, attached: str | None, rest: list[str]) -> dict[str, str | bool] | None:
    if option is None or (attached is not None and not option.metavar):
        return None
    if not option.metavar:
        return {option.field: True}
    if attached is None and not rest:
        return None
    return {option.field: rest.pop(0) if attached is None else attached}
