"""System prompt sections on the environment: identity (SOUL.md), project context files, machine, notes, date."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from hermes_agent.agent.prompt import Environment
from hermes_agent.core.errors import HomeError
from hermes_agent.core.messages import Origin
from hermes_agent.core.section import BYTES_PER_TOKEN
from hermes_agent.host.paths import sentence
from hermes_agent.memory.notes import SOUL, Notes
from hermes_agent.memory.settings import Person, Target
from hermes_agent.scanner import scan

CONTEXT_FILES = (".hermes.md", "HERMES.md")
OTHER_CONTEXT_FILES = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
TEXTS = (".md", ".mdc", ".txt")
"""Endings of what a context file may be a link to."""

LONGEST_CONTEXT = 20_000
"""Characters of SOUL.md or a context file that go into the prompt; what is over is cut, visibly."""
CONTEXT_SHARE = 0.06
"""Share of the model's window that each of them may take, where that is less."""


def environment_of(
    *,
    home: Path,
    workspace: Path,
    now: float,
    place: str = "",
    notes: Callable[[], tuple[str, tuple[str, ...]]] = lambda: ("", ()),
    window: int = 0,
) -> Environment:
    """Read the files and facts for a new prompt prefix. Blocking: call it in a thread if the workspace may be remote.

    A small `window` (tokens; 0: unknown) leaves less room for files. `place`: lines about where the conversation is;
    `notes` returns the notes and warnings about parts left out.
    """
    soul, longest = home / "SOUL.md", longest_file(window)
    identity, said = screened(_cut(read_text(soul), soul.name, longest), soul.name)
    context, told = project_context(workspace, longest)
    memory, heard = notes()
    return Environment(
        identity=identity,
        context=context,
        memory=memory,
        environment=environment(workspace, place),
        date=datetime.fromtimestamp(now).astimezone().date().isoformat(),
        warnings=(*unread(soul), *said, *told, *heard),
    )


def unread(path: Path) -> tuple[str, ...]:
    """A warning if a file of the home exists but cannot be read as text; otherwise nothing."""
    try:
        if not path.is_file():
            return (f"{path} is not a file; the session continues without it.",) if path.exists() else ()
        text = _beginning(path)
    except OSError as error:
        return (f"{sentence(error)} The session continues without it.",)
    if "\N{REPLACEMENT CHARACTER}" in text[:-1]:  # The last one may have been cut.
        return (f"{path.name} is not UTF-8 text; Hermes leaves out the unreadable part.",)
    return ()


def longest_file(window: int) -> int:
    """Most characters of one file in the prompt, by window size."""
    return min(LONGEST_CONTEXT, round(CONTEXT_SHARE * window * BYTES_PER_TOKEN)) if window else LONGEST_CONTEXT


def screened(text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Remove paragraphs that the scanner rejects (prompt injection); returns the text and a warning if any were
    removed."""
    if not text:
        return "", ()
    clean, reason = scan.screened(text, name)
    return clean, (f"{name}: a part was left out of the prompt ({reason}).",) if reason else ()


def project_context(workspace: Path, longest: int = LONGEST_CONTEXT) -> tuple[str, tuple[str, ...]]:
    """The project's context file: the nearest `.hermes.md` or `HERMES.md` up to the git root, else `AGENTS.md`,
    `CLAUDE.md` or `.cursorrules`, screened. Empty if there is none. Links out of the project, or to non-text
    files (`.env`), are skipped with a warning (second value)."""
    root = git_root(workspace) or workspace
    above = [folder for folder in (workspace, *workspace.parents) if folder.is_relative_to(root)]
    places: list[tuple[Path, tuple[str, ...]]] = [(folder, CONTEXT_FILES) for folder in above]
    places += [(folder, OTHER_CONTEXT_FILES) for folder in dict.fromkeys((workspace, root))]
    warnings: tuple[str, ...] = ()
    for folder, names in places:
        text, told = context_in(folder, root, names, longest)
        warnings += told
        if text:
            return text, warnings
    return "", warnings


def context_in(
    folder: Path, root: Path, names: Sequence[str], longest: int = LONGEST_CONTEXT
) -> tuple[str, tuple[str, ...]]:
    """The first of these context files in the folder, screened and with a heading, and warnings; empty if there is
    none."""
    warnings: tuple[str, ...] = ()
    for name in names:
        text, told = _context_text(folder / name, root, longest)
        warnings += told
        if text:
            return text, warnings
    return "", warnings


def git_root(folder: Path) -> Path | None:
    """The folder, or its nearest parent, that holds `.git`."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def environment(workspace: Path, place: str) -> str:
    """The section `# Environment`: working folder, machine, then the lines of `place`."""
    machine = f"- System: {platform.system()} {platform.release()}, {platform.machine()}"
    return f"# Environment\n- Working folder: {workspace}\n{machine}\n{place}".rstrip()


def read_text(path: Path) -> str:
    """The beginning of a text file; empty if it is missing or no regular file. Invalid UTF-8 becomes replacement
    characters."""
    try:
        return _beginning(path) if path.is_file() else ""
    except OSError:
        return ""


def _beginning(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(LONGEST_CONTEXT * 4 + 4)
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return raw.decode(encoding, "replace")


def _context_text(path: Path, root: Path, longest: int) -> tuple[str, tuple[str, ...]]:
    if not path.is_file():
        return "", ()
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        return "", (f"{path.name} leads out of the project; it was left out of the prompt.",)
    if path.is_symlink() and target.suffix not in TEXTS and target.name not in OTHER_CONTEXT_FILES:
        return "", (f"{path.name} is a link to {target.name}, which is not text; it was left out of the prompt.",)
    text, warnings = screened(_cut(read_text(path).strip(), path.name, longest), path.name)
    return (f"# Project context ({path.name})\n{text}", warnings) if text else ("", ())


def _cut(text: str, name: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n[cut: {name} is longer than {longest} characters]"


async def found_notes(notes: Notes, person: Person) -> tuple[frozenset[str], Origin]:
    """The person's notes that nobody known wrote, and the label of SOUL.md. What cannot be read is told elsewhere."""
    entries: frozenset[str] = frozenset()
    persona = Origin.RUNTIME
    with suppress(HomeError):
        persona = Origin.RUNTIME if await notes.is_known(SOUL) else Origin.FILE
    for target in () if person.shared else Target:
        with suppress(HomeError):
            entries |= await notes.found(person, target)
    return entries, persona
