"""Using a skill by its slash: its body with the slots filled in and, where it is trusted, its commands run."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.skills.bundles import BadBundle, bundles_of
from hermes_agent.skills.format import filled, variables_of
from hermes_agent.skills.library import Library, NoSkill, NotHere
from hermes_agent.skills.skill import Occasion, Parameter, Skill, SkillHeader

COMMAND = re.compile(r"!`([^`\n]+)`")
SLOT = re.compile(r"\{\{\s*([\w-]+)\s*\}\}")
GIVEN = re.compile(r"([\w-]+)=(.*)", re.DOTALL)
MOST_STACKED = 5
LONGEST_OUTPUT = 4_000
SWITCH = {"yes": "yes", "true": "yes", "on": "yes", "1": "yes", "no": "no", "false": "no", "off": "no", "0": "no"}

Run = Callable[[str], Awaitable[str]]
"""Runs one command where the session's commands run, and gives what it printed, or why it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoked:
    """A line that used skills: what the model is shown of them, and the words that the person added."""

    names: tuple[str, ...]
    text: str
    words: str


async def invoke(
    library: Library, line: str, *, workspace: str, session: str, run: Run, occasion: Occasion
) -> Invoked | None:
    """What a line such as `/skill words`, `/one /two words` or `/bundle words` means; None where its first word is
    neither.

    Raises `ToolError` for a slot that needs a value and has none, `BadSkill` for a skill that cannot be used, `NotHere`
    for one that is not for this occasion, `BadBundle` for a bundle that names what there is not.
    """
    headers, words, said = await _leading(library, line, workspace, occasion)
    if not headers:
        return None
    texts = []
    for header in headers:
        skill = await library.read(header)
        # The words belong to the last of several: the others are given none.
        texts.append(await rendered(library, header, skill, words if header is headers[-1] else "", session, run))
    return Invoked(names=tuple(header.name for header in headers), text="\n\n".join([*texts, *said]), words=words)


async def preloaded(
    library: Library, names: tuple[str, ...], *, workspace: str, session: str, run: Run, occasion: Occasion
) -> tuple[tuple[str, ...], str]:
    """Skills and bundles that were asked for before anything was said: the skills' names, and their text. Raises
    `NoSkill`, `NotHere`, `BadBundle`."""
    headers: list[SkillHeader] = []
    said: list[str] = []
    for name in names[:MOST_STACKED]:
        bundle = await _bundle(library, name, workspace, occasion)
        headers += bundle[0] if bundle else [await library.find(name, workspace, occasion)]
        said += bundle[1] if bundle else []
    headers = list({header.name: header for header in headers}.values())
    texts = [await rendered(library, header, await library.read(header), "", session, run) for header in headers]
    return tuple(header.name for header in headers), "\n\n".join([*texts, *said])


async def rendered(library: Library, header: SkillHeader, skill: Skill, words: str, session: str, run: Run) -> str:
    """The body as the model reads it. What the person said is put in last, and is never run."""
    body = await _with_output(library, header, skill, filled(skill.body, variables_of(header, session)), run)
    slots = slots_of(skill, words)
    body = SLOT.sub(lambda found: slots.get(found[1], found[0]), body).replace("$ARGUMENTS", words)
    return f"[Skill {skill.name}, folder {header.folder}: follow it for what is asked.]\n{body}"


def slots_of(skill: Skill, words: str) -> dict[str, str]:
    """The value of each slot: `name=value`, otherwise in order, otherwise its default. Raises `ToolError`."""
    parameters = {each.name: each for each in skill.ours.parameters}
    if not parameters:
        return {}
    named: dict[str, str] = {}
    rest: list[str] = []
    for word in _words(words):
        found = GIVEN.fullmatch(word)
        if found and found[1] in parameters:
            named[found[1]] = found[2]
        else:
            rest.append(word)
    free = [name for name in parameters if name not in named]
    for number, name in enumerate(free[: len(rest)]):
        # The last slot takes all that is left, so that a sentence needs no quotes.
        named[name] = " ".join(rest[number:]) if name == free[-1] else rest[number]
    return {name: _checked(skill, each, named.get(name, each.default)) for name, each in parameters.items()}


def hash_of(skill: Skill) -> str:
    """What trust is bound to: another text is another skill."""
    return hashlib.sha256(skill.text.encode()).hexdigest()


def commands_of(skill: Skill) -> list[str]:
    """The commands inside its body."""
    return COMMAND.findall(skill.body)


async def _leading(
    library: Library, line: str, workspace: str, occasion: Occasion
) -> tuple[list[SkillHeader], str, list[str]]:
    """The skills that a line begins with, the words behind them, and what their bundles say."""
    headers: dict[str, SkillHeader] = {}
    said: list[str] = []
    rest = line.strip()
    for _ in range(MOST_STACKED):
        word, _, after = rest.partition(" ")
        name = word[1:]
        if not rest.startswith("/") or not name or "/" in name or "\n" in name:
            break
        try:
            bundle = await _bundle(library, name, workspace, occasion)
            found = bundle[0] if bundle else [await library.find(name, workspace, occasion)]
        except NoSkill:
            break
        headers |= {header.name: header for header in found}
        said += bundle[1] if bundle else []
        rest = after.strip()
    return list(headers.values()), rest, said


async def _bundle(
    library: Library, name: str, workspace: str, occasion: Occasion
) -> tuple[list[SkillHeader], list[str]] | None:
    """The skills of a bundle and what it says; None where there is none of that name. It wins over a skill."""
    bundle = await asyncio.to_thread(bundles_of(library.places.home).get, name)
    if bundle is None:
        return None
    try:
        headers = [await library.find(each, workspace, occasion) for each in bundle.skills]
    except (NoSkill, NotHere) as error:
        raise BadBundle(f"The bundle `{name}` cannot be used: {error}") from error
    return headers, [bundle.instruction] if bundle.instruction else []


async def _with_output(library: Library, header: SkillHeader, skill: Skill, body: str, run: Run) -> str:
    if not COMMAND.search(body):
        return body
    trusted = (await asyncio.to_thread(library.state.get)).trusted.get(header.name) == hash_of(skill)
    parts, position = [], 0
    for found in COMMAND.finditer(body):
        said = await run(found[1]) if trusted else _untrusted(header.name, found[1])
        parts += [body[position : found.start()], said[:LONGEST_OUTPUT]]
        position = found.end()
    return "".join([*parts, body[position:]])


def _untrusted(name: str, command: str) -> str:
    return f"[not run: `{command}`; `hermes skills trust {name}` lets this skill run its commands]"


def _words(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError:
        return words.split()


def _checked(skill: Skill, parameter: Parameter, value: str | None) -> str:
    if value is None:
        uses: Mapping[str, str] = {each.name: each.description or each.type for each in skill.ours.parameters}
        told = "; ".join(f"{name}: {words}" for name, words in uses.items())
        raise ToolError(f"`/{skill.name}` needs `{parameter.name}`: /{skill.name} {parameter.name}=... ({told})")
    fits = True
    match parameter.type:
        case "whole":
            fits = bool(re.fullmatch(r"[+-]?\d+", value))
        case "number":
            fits = bool(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", value))
        case "switch":
            fits, value = value.lower() in SWITCH, SWITCH.get(value.lower(), value)
        case "text":
            pass
    if not fits:
        wanted = {"whole": "a whole number", "number": "a number", "switch": "yes or no"}[parameter.type]
        raise ToolError(f"`{parameter.name}` of `/{skill.name}` must be {wanted}, not `{value[:80]}`.")
    return value
