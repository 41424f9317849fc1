"""The notes as a section of the prompt, read once when a conversation starts and frozen there."""

from __future__ import annotations

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small
from hermes_agent.host.paths import Home
from hermes_agent.memory.entries import BETWEEN, decoded, entries_of, size_of
from hermes_agent.memory.settings import MemorySettings, Person, Target
from hermes_agent.scanner.scan import screened

HEAD = "# What you noted in earlier conversations (tool memory; as it was when this one began)"
TITLES = {Target.MEMORY: "Notes", Target.USER: "The person"}


def snapshot(home: Home, settings: MemorySettings, person: Person) -> tuple[str, tuple[str, ...]]:
    """The prompt section with a person's notes, empty where there are none and in shared conversations; and
    sentences for the person about what was left out.

    Dangerous entries by the scanner are replaced by a note; what exceeds the limit is cut, with a note. Blocking.
    """
    if person.shared:
        return "", ()
    wanted = {
        Target.MEMORY: (settings.memory_enabled, settings.memory_char_limit),
        Target.USER: (settings.user_profile_enabled, settings.user_char_limit),
    }
    found = [_part(home, person, target, limit) for target, (on, limit) in wanted.items() if on]
    shown = [text for text, _ in found if text]
    return "\n\n".join([HEAD, *shown]) if shown else "", tuple(said for _, told in found for said in told)


def _part(home: Home, person: Person, target: Target, limit: int) -> tuple[str, list[str]]:
    try:
        entries = entries_of(decoded(read_small(home.memories / person.item(target))))
    except HomeError as error:
        return f"## {TITLES[target]}\n[{error}]", [str(error)]
    if not entries:
        return "", []
    size, clean, told = size_of(entries), [], []
    if size > limit:
        entries = _within(entries, limit, target.file)
        told.append(f"{target.file} has {size:,} characters, {limit:,} are shown to the agent: shorten it.")
    for number, entry in enumerate(entries, 1):
        text, reason = screened(entry, f"{target.file}, entry {number}")
        clean.append(text)
        told += [f"{target.file}: entry {number} was left out of the prompt ({reason})."] if reason else []
    used = f"{size:,} of {limit:,} characters"
    return f"## {TITLES[target]} ({target.file}, {used})\n" + BETWEEN.join(clean), told


def _within(entries: list[str], limit: int, name: str) -> list[str]:
    """The entries up to the limit, the last one a note."""
    kept: list[str] = []
    for entry in entries:
        room = limit - (size_of(kept) + len(BETWEEN) if kept else 0)
        if len(entry) > room:
            cut = [entry[:room]] if room > 0 else []
            left = len(entries) - len(kept) - len(cut)
            said = f"[{name} is over its limit of {limit:,} characters: the rest ({left} more entries) is not shown]"
            return [*kept, *cut, said]
        kept.append(entry)
    return kept
