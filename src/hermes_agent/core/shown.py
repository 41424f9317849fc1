"""What people are shown of a message: their own words, a label for each thing beside them; counts with their noun."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_agent.core.messages import NOTE, File, Image, Message, Origin, Part, Role, Text


def plural(count: int, one: str, several: str = "") -> str:
    """`1 message`, `2 messages`; `several` where it is more than an `s` behind the noun."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


SKILL = re.compile(r"\[Skill ([\w-]+), folder ")
FILE_NAME = re.compile(r"([^\n]{1,300}):\n")
MARKED = re.compile(rf"{re.escape(NOTE)}[^>]*>.*?</runtime>\s*", re.DOTALL)
"""A note of the runtime with its mark."""
DAMAGED = "Entry {number} of the log ({kind}) is damaged and left out."
"""What stands in a log in place of an entry that cannot be read."""
DAMAGE = re.compile(r"Entry \d+ of the log \(\w+\) is damaged and left out\.")
PEOPLE = (Origin.OWNER, Origin.MEMBER, Origin.GUEST)


def words_of(message: Message) -> str:
    """The words of a message without what the runtime, skills and files added; of a reply, all of it."""
    texts = [part for part in message.parts if isinstance(part, Text)]
    if message.role is Role.USER:
        texts = [part for part in texts if part.origin in PEOPLE]
    return MARKED.sub("", "".join(part.text for part in texts)).strip("\n")


def additions(message: Message) -> list[str]:
    """A label for each skill, file and picture of a person's message: `/review`, `notes.md, 3 lines`, `picture`."""
    return [label for part in message.parts for label in _labels(part)] if message.role is Role.USER else []


def _labels(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text, origin=origin) if origin not in PEOPLE:
            if names := SKILL.findall(text):
                yield from (f"/{name}" for name in names)
            elif origin is not Origin.RUNTIME and text.strip():
                name = FILE_NAME.match(text)
                size = plural(text.rstrip("\n").count("\n") + (name is None), "line")
                yield f"{name[1]}, {size}" if name else size
        case Image():
            yield "picture"
        case File(name=name):
            yield name
        case _:
            pass
