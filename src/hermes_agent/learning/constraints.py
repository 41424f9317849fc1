"""Constraints in skills and notes: finds lines that forbid something or say what fails, and parses their marker
(scope, check and expiry)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

from hermes_agent.core.dataclass import dataclass
from hermes_agent.learning.mentions import FENCE
from hermes_agent.memory.entries import entries_of
from hermes_agent.store.learning.lessons import Sort
from hermes_agent.store.versions import Kind

MARK = re.compile(r"\[in: (?P<scope>.+?); check: (?P<check>.+); until: (?P<until>[^\];]+)\]\.?$")
BEGUN = re.compile(r"\[in: |; check: |; until: ")
LONGEST = 400
"""Characters of a constraint with its mark."""
REACH = 600
"""Characters behind a failure in which its case is looked for."""
SENTENCE = re.compile(r"(?<=[.;!?])\s")

# What did not go, whoever says so.
FAILS = re.compile(
    r"\b(?:(?:does|did|would|is|are|was|could)(?:n't| not)|will not|won't|can't|cannot|can not)\s+(?:\w+\s+){0,2}?"
    r"(?:work\w*|run|start|exist|installed|available|supported|usable|reachable|be used|possible|found|respond|"
    r"function\w*)\b"
    r"|\b(?:do not|don't|never) (?:work|respond|function)\w*\b"
    r"|\b(?:command|module|tool|program|binary|package) not found\b"
    r"|\b(?:is|are|was|seems?|remains?)\s+(?:\w+\s+)?(?:broken|unavailable|missing|unusable|unsupported|unreachable|"
    r"unreliable|impossible|down|disabled|useless)\b"
    r"|\bnot (?:installed|available|supported|usable|reachable)\b"
    r"|\b(?:always|keeps?|kept) fail\w*\b|\b(?:fails|failed) (?:here|always|every time|on this)\b"
    r"|\b(?:unable to|cannot|can't) (?:use|run|call|install|access|reach|open)\b"
    r"|\bthere is no (?:tool|command|program|network|internet|access)\b",
    re.IGNORECASE,
)
# What is only supposed (`If the folder is missing, make it`), or said of a case alone (`It does not work without it`).
SUPPOSED = re.compile(r"\b(?:if|when|whenever|where|unless|until|while|in case)\b", re.IGNORECASE)
CASE = re.compile(r"[^.;!?]*?\b(?:if|when|whenever|unless|without|until|before|while|outside)\b", re.IGNORECASE)
# A program that was not there.
PROGRAM = re.compile(
    r"`?(?<![\w./-])([A-Za-z][\w.+-]{0,40})`?(?:\s+(?:command|program|binary|tool))?"
    r"(?:: command not found|\s+(?:is|was) (?:not|n't) (?:installed|found|available)|\s+(?:isn't|wasn't) "
    r"(?:installed|found|available)|\s+is (?:missing|unavailable))",
    re.IGNORECASE,
)
# What is ruled out.
FORBIDS = re.compile(
    r"\b(?:do not|don't|never|must not|mustn't|should not|shouldn't|stop|no longer|refrain from)\s+(?:\w+ly\s+)?"
    r"(?:us(?:e|ing)|call(?:ing)?|run(?:ning)?|rely(?:ing)?|try(?:ing)?|attempt(?:ing)?|invok(?:e|ing)|trust(?:ing)?)\b"
    r"|^\W*(?:avoid|never|do not|don't)\b(?! (?:forget|hesitate|worry|skip|miss))"
    r"|\bavoid (?:using|calling|running|the)\b",
    re.IGNORECASE,
)
# What is so on one machine today.
HERE = re.compile(
    r"\b(?:is|are) (?:already |now )?installed\b|\b(?:version|v)\s?\d+\.\d+|\blistens? on\b|\bport \d{2,5}\b"
    r"|\benvironment variable\b|\bon (?:the |its )?PATH\b"
    r"|\b(?:this|the) (?:machine|host|computer|server|container) (?:has|runs)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Marker of a constraint: its scope (where it holds), the check that succeeds once it no longer holds (a shell
    command, or `tool NAME`), and its last day."""

    scope: str
    check: str
    until: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A line of a skill, or an entry of the notes, read as a possible constraint: with its marker (`whole`) and
    without (`words`). `mark` is None where there is none; `broken` says what is wrong with an invalid one; the
    properties say whether the text constrains."""

    whole: str
    words: str
    mark: Mark | None = None
    broken: str = ""

    @property
    def fails(self) -> bool:
        """Whether it says that something does not work."""
        return any(True for sentence in SENTENCE.split(_plain(self.words)) for _ in _failures(sentence))

    @property
    def fails_ever(self) -> bool:
        """Whether it says so without any condition."""
        return any(
            CASE.match(sentence, found.end(), found.end() + REACH) is None
            for sentence in SENTENCE.split(_plain(self.words))
            for found in _failures(sentence)
        )

    @property
    def forbids(self) -> bool:
        """Whether it forbids something."""
        return FORBIDS.search(_plain(self.words)) is not None

    @property
    def here(self) -> bool:
        """Whether it describes this machine."""
        return HERE.search(self.words) is not None


def lines_of(kind: Kind, text: str) -> list[Constraint]:
    """The lines of a skill's file outside of code blocks, or the entries of the notes."""
    found = entries_of(text) if kind is Kind.MEMORY else FENCE.sub("", text).splitlines()
    return [_line(each.strip()) for each in found if each.strip()]


def added(kind: Kind, before: str, after: str) -> list[Constraint]:
    """The lines of a text that another did not have."""
    known = {line.whole for line in lines_of(kind, before)}
    return [line for line in lines_of(kind, after) if line.whole not in known]


def sort_of(line: Constraint) -> Sort | None:
    """The sort of a line in force, None where it constrains nothing."""
    if line.mark is not None:
        return Sort.AVOID if line.fails or line.forbids or not line.here else Sort.FACT
    return Sort.PREFER if line.forbids else None


def guessed_check(line: Constraint) -> str:
    """A check for an unmarked line that says which program is missing; empty where it names none."""
    found = PROGRAM.search(_plain(line.words))
    return f"command -v {found[1]}" if found else ""


def without_marks(text: str) -> str:
    """The text without marks of constraints."""
    marks = ((line, _mark_of(line)) for line in text.splitlines())
    return "\n".join(line[: mark.start()].rstrip() if mark else line for line, mark in marks)


def ends_at(day: date) -> float:
    """The end of the last day (UTC), in seconds since 1970."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + 86_400


def cut_out(text: str, whole: str) -> Sequence[str]:
    """The lines of a text that hold this constraint, verbatim."""
    return tuple(dict.fromkeys(line for line in text.splitlines() if line.strip() == whole))


def _plain(words: str) -> str:
    """With the apostrophe that keyboards have."""
    return words.replace("\u2019", "'")


def _failures(sentence: str) -> Iterator[re.Match[str]]:
    """Where it is said that something does not work, but what is only supposed."""
    supposed = SUPPOSED.search(sentence)
    return FAILS.finditer(sentence, 0, supposed.start() if supposed else len(sentence))


def _mark_of(whole: str) -> re.Match[str] | None:
    """The mark at the end of a line."""
    begun = whole.rfind("[in: ", max(0, len(whole) - LONGEST))
    return MARK.match(whole, begun) if begun >= 0 else None


def _line(whole: str) -> Constraint:
    found = _mark_of(whole)
    if found is None:
        broken = "its mark is not `[in: WHERE; check: COMMAND; until: YYYY-MM-DD]`" if BEGUN.search(whole) else ""
        return Constraint(whole=whole, words=whole, broken=broken)
    words = whole[: found.start()].rstrip()
    try:
        until = date.fromisoformat(found["until"].strip())
    except ValueError:
        return Constraint(whole=whole, words=words, broken="`until` is not a day (YYYY-MM-DD)")
    return Constraint(
        whole=whole, words=words, mark=Mark(scope=found["scope"].strip(), check=found["check"].strip(), until=until)
    )
