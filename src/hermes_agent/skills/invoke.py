"""Invokes a skill by its slash command: fills in the slots and, where the skill is trusted, runs its inline
commands."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.host.late import libraries
from hermes_agent.host.paths import PRIVATE_FOLDER, read_small, write_private
from hermes_agent.skills.format import filled, name_problems, variables_of
from hermes_agent.skills.library import Library, NoSkill, NotHere
from hermes_agent.skills.skill import Occasion, Parameter, Skill, SkillHeader

FOLDER = "skill-bundles"
MOST_SKILLS = 8
LARGEST = 1 << 16


class BadBundle(ToolError):
    """A bundle that is missing or invalid."""

    kind = "bad_bundle"


class Bundle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bundle: a named group of skills. `skills` are loaded in order; `instruction` follows them."""

    name: str
    skills: tuple[str, ...]
    description: str = ""
    instruction: str = ""


class Bundles:
    """Reads the bundles (groups of skills) of one home, `skill-bundles/NAME.yaml`. Blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """All bundle names, also of invalid ones."""
        return sorted(path.stem for path in self._folder.glob("*.yaml")) if self._folder.is_dir() else []

    def get(self, name: str) -> Bundle | None:
        """The bundle of that name; None where there is none. Raises `BadBundle` for an invalid file."""
        if name_problems(name):
            return None
        path = self._folder / f"{name}.yaml"
        content = read_small(path, LARGEST) if self._folder.is_dir() else None
        return None if content is None else _read(content, path)

    def there(self, name: str) -> Bundle:
        """The bundle of that name. Raises `BadBundle`."""
        found = self.get(name)
        if found is None:
            near = get_close_matches(name, self.names(), 1, 0.5)
            hint = f"Did you mean `{near[0]}`?" if near else "`hermes bundles list` names those there are."
            raise BadBundle(f"There is no bundle `{name[:80]}`. {hint}")
        return found

    def put(self, bundle: Bundle) -> Path:
        """Create or replace a bundle; its file. Raises `BadBundle`."""
        if problems := _problems(bundle):
            raise BadBundle(" ".join(problems))
        self._folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        path = self._folder / f"{bundle.name}.yaml"
        plain = {key: value for key, value in msgspec.to_builtins(bundle).items() if value}
        text = libraries.yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
        write_private(path, text.encode())
        return path

    def remove(self, name: str) -> None:
        """Delete a bundle; its skills stay. Raises `BadBundle`."""
        if name not in self.names():
            self.there(name)
        (self._folder / f"{name}.yaml").unlink()


def bundles_of(skills: Path) -> Bundles:
    """The bundles of the home with that skills folder."""
    return Bundles(skills.parent / FOLDER)


def _read(content: bytes, path: Path) -> Bundle:
    try:
        fields: Any = libraries.yaml.safe_load(content)  # Parsed here: what comes out is a Bundle.
        named = {"name": path.stem, **fields} if isinstance(fields, dict) else fields
        bundle = msgspec.convert(named, Bundle)
    except (libraries.yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadBundle(f"{path} is not a bundle: {' '.join(str(error).split())}.") from error
    problems = _problems(bundle)
    if bundle.name != path.stem:
        problems.append(f"its name is `{bundle.name[:80]}`, and the file's is `{path.stem}`.")
    if problems:
        raise BadBundle(f"{path} is not a bundle: {' '.join(problems)}")
    return bundle


def _problems(bundle: Bundle) -> list[str]:
    found = name_problems(bundle.name)
    if not bundle.skills:
        found.append("it names no skills.")
    if len(bundle.skills) > MOST_SKILLS:
        found.append(f"it names {len(bundle.skills)} skills, at most {MOST_SKILLS} are put in.")
    return found


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
    """An invocation of skills: the text for the model, the text that the person added to the command, and the label of
    the worst of these skills."""

    names: tuple[str, ...]
    text: str
    words: str
    origin: Origin


async def invoke(
    library: Library, line: str, *, workspace: str, session: str, run: Run, occasion: Occasion
) -> Invoked | None:
    """Parse and render a line such as `/skill words`, `/one /two words` or `/bundle words`; None where its first
    word is neither skill nor bundle.

    Raises `ToolError` for a slot without a value, `BadSkill` for an invalid skill, `NotHere` for one of another
    occasion, `BadBundle` for a bundle with a missing skill.
    """
    headers, words, said = await _leading(library, line, workspace, occasion)
    if not headers:
        return None
    texts = []
    for header in headers:
        skill = await library.read(header)
        # The words belong to the last of several: the others are given none.
        texts.append(await rendered(library, header, skill, words if header is headers[-1] else "", session, run))
    return await _invoked(library, headers, (*texts, *said), words)


async def preloaded(
    library: Library, names: tuple[str, ...], *, workspace: str, session: str, run: Run, occasion: Occasion
) -> Invoked:
    """Load skills and bundles at the start of a session. Raises `NoSkill`,
    `NotHere`, `BadBundle`."""
    headers: list[SkillHeader] = []
    said: list[str] = []
    for name in names[:MOST_STACKED]:
        bundle = await _bundle(library, name, workspace, occasion)
        headers += bundle[0] if bundle else [await library.find(name, workspace, occasion)]
        said += bundle[1] if bundle else []
    headers = list({header.name: header for header in headers}.values())
    texts = [await rendered(library, header, await library.read(header), "", session, run) for header in headers]
    return await _invoked(library, headers, (*texts, *said), "")


async def _invoked(library: Library, headers: Sequence[SkillHeader], texts: Sequence[str], words: str) -> Invoked:
    origins = [await library.origin_of(header) for header in headers]
    origin = max(origins, key=lambda each: each.trust, default=Origin.SKILL)
    return Invoked(names=tuple(each.name for each in headers), text="\n\n".join(texts), words=words, origin=origin)


async def rendered(library: Library, header: SkillHeader, skill: Skill, words: str, session: str, run: Run) -> str:
    """The body as text for the model. The person's words are inserted last and never executed."""
    body = await _with_output(library, header, skill, filled(skill.body, variables_of(header, session)), run)
    slots = slots_of(skill, words)
    body = SLOT.sub(lambda found: slots.get(found[1], found[0]), body).replace("$ARGUMENTS", words)
    return f"[Skill {skill.name}, folder {header.folder}: follow it for what is asked.]\n{body}"


def slots_of(skill: Skill, words: str) -> dict[str, str]:
    """The value of each slot: by `name=value`, otherwise by position, otherwise its default. Raises `ToolError`."""
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
    """The hash of the text that trust is bound to."""
    return hashlib.sha256(skill.text.encode()).hexdigest()


def commands_of(skill: Skill) -> list[str]:
    """The inline commands of its body."""
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
        refused = f"[not run: `{found[1]}`; `hermes skills trust {header.name}` lets this skill run its commands]"
        said = await run(found[1]) if trusted else refused
        parts += [body[position : found.start()], said[:LONGEST_OUTPUT]]
        position = found.end()
    return "".join([*parts, body[position:]])


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
