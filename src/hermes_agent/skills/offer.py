"""What the model is told of skills without asking: an index of fixed size, and candidates beside a message."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.skills.library import Library
from hermes_agent.skills.occasion import Occasion
from hermes_agent.skills.skill import Layer, SkillHeader

HOW = """\
# Skills
Procedures that were worked out before, by this person, by you or by others. When one fits the task, load it with \
skill_view before you begin and follow it. What may fit a message stands beside it; skills_list(query) finds others. \
After a task of five or more tool calls, a tricky fix, or a way that you had to find out, keep it with skill_manage; \
where a loaded skill proves wrong, patch it at once."""
PINNED = "Pinned by the person; load them first where they fit:"
WHOLE_UP_TO = 24
"""So many skills are named one by one; of more only the families are, so that the prefix does not grow with them."""
LONGEST_INDEX = 2_400
"""Characters of the names or families; with what is pinned and the words above about 900 tokens."""
MOST_FAMILIES = 60
MOST_PINNED = 8
FEWEST_WORDS = 2


async def index_text(library: Library, workspace: str, occasion: Occasion) -> tuple[str, tuple[str, ...]]:
    """The section of a new prefix, empty where there are no skills, and the names in it."""
    headers = await library.all(workspace, occasion, limit=WHOLE_UP_TO + 1)
    if not headers:
        return "", ()
    if len(headers) <= WHOLE_UP_TO:
        pins = [header.name for header in await _pinned(library, workspace, occasion)]
        first = [f"{PINNED} {', '.join(pins)}"] if pins else []
        named = _fitting([f"- {shown(header)}" for header in headers], "more: skills_list")
        return "\n".join([HOW, named, *first]), tuple(header.name for header in headers)
    # The largest, by name: a skill more changes no order.
    families = sorted(family for family, _ in (await library.families(workspace, occasion))[:MOST_FAMILIES])
    lines = [f"Families (skills_list(family) shows one): {_fitting(families, '...', ', ')}"]
    pinned = await _pinned(library, workspace, occasion)
    if pinned:
        lines += [PINNED, *(f"- {shown(header)}" for header in pinned)]
    return "\n".join([HOW, *lines]), tuple(header.name for header in pinned)


class Candidates:
    """The skills that fit what the person just said, beside their message."""

    name = "Skills that may fit"

    def __init__(self, library: Library, workspace: str, occasion: Occasion) -> None:
        self._library, self._workspace, self._occasion = library, workspace, occasion

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  the same for every session
        """A line for each; empty where nothing fits, or hardly anything was said."""
        if len(heard.split()) < FEWEST_WORDS:
            return ""
        headers = await self._library.candidates(heard, self._workspace, self._occasion)
        return "\n".join(f"- {shown(header)}" for header in headers)


def shown(header: SkillHeader) -> str:
    """A skill as one line, with where it is from where that is not the home."""
    return header.line if header.layer in (Layer.USER, Layer.BUNDLED) else f"{header.line} [{header.layer.value}]"


async def _pinned(library: Library, workspace: str, occasion: Occasion) -> list[SkillHeader]:
    found: list[SkillHeader] = []
    for name in library.state.get().pinned:
        headers = await library.same_name(name, workspace)
        found += [header for header in headers[:1] if not occasion.why_not(header.ours)]
    return found[:MOST_PINNED]


def _fitting(texts: Sequence[str], more: str, between: str = "\n") -> str:
    kept: list[str] = []
    room = LONGEST_INDEX
    for text in texts:
        room -= len(text) + len(between)
        if room < 0:
            return between.join([*kept, more])
        kept.append(text)
    return between.join(kept)
