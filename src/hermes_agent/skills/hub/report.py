"""What is known of a skill before it is taken: what it breaks, what the scanner found, what it could run."""

from __future__ import annotations

from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.scanner.finding import Severity
from hermes_agent.scanner.scan import scan
from hermes_agent.skills.depot.files import Files, text_or_none
from hermes_agent.skills.depot.lock import Trust
from hermes_agent.skills.format import read
from hermes_agent.skills.invoke import commands_of
from hermes_agent.skills.skill import FILE, Skill

PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")
MOST_PER_FILE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Something in a file that a person should know of; `line` is 0 for the file as a whole."""

    file: str
    line: int
    severity: Severity
    what: str

    @property
    def words(self) -> str:
        """It in one line."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.severity.name.lower()}: {where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A skill, its files in bytes, what was seen in them, the commands in its text and the files that may be run."""

    skill: Skill
    sizes: dict[str, int]
    seen: tuple[Seen, ...] = ()
    commands: tuple[str, ...] = ()
    programs: tuple[str, ...] = field(default=())

    def against(self, trust: Trust) -> tuple[str, ...]:
        """Why a skill from a source of that trust is not taken unless a person insists."""
        least = Severity.BLOCK if trust is Trust.TRUSTED else Severity.WARN
        return tuple(each.words for each in self.seen if each.severity >= least)


def report(name: str, files: Files) -> Report:
    """Read and scan. Raises `BadSkill` for a text that is no skill."""
    skill = read((text_or_none(files[FILE].content) or ""), name)
    seen = [each for file, content in sorted(files.items()) for each in _seen(file, content.content)]
    return Report(
        skill=skill,
        sizes={file: len(each.content) for file, each in sorted(files.items())},
        seen=tuple(sorted(seen, key=lambda each: -each.severity)),
        commands=tuple(commands_of(skill)),
        programs=tuple(file for file, each in sorted(files.items()) if each.runs),
    )


def _seen(file: str, content: bytes) -> list[Seen]:
    if content.startswith(PROGRAMS):
        return [Seen(file=file, line=0, severity=Severity.WARN, what="a program that cannot be read")]
    text = text_or_none(content)
    if text is None:
        return [Seen(file=file, line=0, severity=Severity.NOTE, what=f"no text, {len(content):,} bytes")]
    return [
        Seen(
            file=file,
            line=text.count("\n", 0, each.start) + 1,
            severity=each.severity,
            what=f"{each.category.value}: {each.what}",
        )
        for each in scan(text)[:MOST_PER_FILE]
    ]
