"""Operations on skills and bundles of them: list, read, pin, trust, copy, archive and revert. Guests see none; others
see the skills that apply where they speak; only the owner changes them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from hermes_agent.app.operations.access import Access, HomeSystem, Kind, Noun, option, place, verb
from hermes_agent.app.skills import Skills
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.skills.depot import State, Used, own_files
from hermes_agent.skills.invoke import BadBundle, Bundle, Bundles, bundles_of, commands_of, hash_of, rendered
from hermes_agent.skills.skill import Occasion, Skill, SkillHeader as SkillHeader
from hermes_agent.skills.versions import diff_of, diffs
from hermes_agent.store.versions import By, Version

if TYPE_CHECKING:
    from hermes_agent.app.system import System
    from hermes_agent.skills.writing import Writer

EVERY = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRow:
    """One row in the list of skills."""

    name: str
    layer: str
    owner: str
    family: str
    pinned: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    """A skill with its header (location, layer) and text, the skills of the same name that it shadows, and the commands
    that it runs if trusted."""

    header: SkillHeader
    skill: Skill
    hidden: Sequence[SkillHeader]
    commands: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The skills of a home with their writer, opened for one operation of the owner."""

    kept: Skills
    writer: Writer
    by: By


@asynccontextmanager
async def open_skills(access: Access[HomeSystem]) -> AsyncIterator[Shelf]:
    """Context manager: open the skills for changes. Raises `HermesError` unless the owner asks."""
    access.check_owner("Only the owner may manage the skills of this home.")
    system, by = access.system, By(author=access.author, principal=access.who.key)
    kept = Skills(system.home, system.settings.skills, system.clock, lambda: system.store)
    try:
        yield Shelf(kept=kept, writer=kept.writer(system.store), by=by)
    finally:
        await kept.close()


async def list_skills(access: Access[System], limit: int) -> Sequence[SkillHeader]:
    """Skills this person may see, by name."""
    if access.who.standing is Standing.GUEST:
        return ()
    return await access.system.skills.library.all(occasion=_occasion(access), limit=limit)


async def find_skill(access: Access[System], name: str) -> tuple[SkillHeader, Skill]:
    """A skill that this person may see. Raises `HermesError`."""
    if access.who.standing is Standing.GUEST:
        raise HermesError("Guests see no skills.")
    library = access.system.skills.library
    header = await library.find(name, occasion=_occasion(access))
    return header, await library.read(header)


async def fill_skill(access: Access[System], name: str, given: Mapping[str, str]) -> str:
    """A skill's body with its slots filled by name, and `$ARGUMENTS` by what `arguments` gives; none of its commands is
    run. Raises `HermesError`."""
    header, skill = await find_skill(access, name)
    named = [f"{key}={value}" for key, value in given.items() if key != "arguments"]
    words = " ".join(filter(None, (shlex.join(named), given.get("arguments", ""))))
    return await rendered(access.system.skills.library, header, skill, words, "", _not_run)


async def _not_run(command: str) -> str:
    return f"[not run here: `{command}`]"


def _occasion(access: Access[System]) -> Occasion | None:
    where = access.where or Conversation(platform=access.who.platform, chat_kind="chat")
    return None if access.sees_all else Occasion.at(where.key)


async def skill_rows(access: Access[HomeSystem], family: str = "") -> tuple[list[SkillRow], Sequence[tuple[str, str]]]:
    """Skills visible from a folder, and unusable ones with their problem."""
    async with open_skills(access) as shelf:
        library = shelf.kept.library
        pinned = library.state.get().pinned
        rows = [
            SkillRow(
                name=header.name,
                layer=header.layer.value,
                owner=(await shelf.writer.owner(header)).value,
                family=header.family,
                pinned=header.name in pinned,
                description=header.description,
            )
            for header in await library.all(access.folder, family=family, limit=EVERY)
        ]
        return rows, await library.broken(access.folder)


async def read_skill(access: Access[HomeSystem], name: str) -> SkillText:
    """A skill as it is now. Raises `HermesError`."""
    async with open_skills(access) as shelf:
        library = shelf.kept.library
        header = await library.find(name, access.folder)
        skill = await library.read(header)
        hidden = (await library.same_name(name, access.folder))[1:]
        return SkillText(header=header, skill=skill, hidden=hidden, commands=commands_of(skill))


async def edit_skill(access: Access[HomeSystem], name: str, after: str, before: str) -> int:
    """Replace a skill's text, compare-and-swap against `before`. Returns its version (0: unchanged). Raises
    `HermesError`."""
    async with open_skills(access) as shelf:
        if (await shelf.kept.library.read(await shelf.kept.library.find(name, access.folder))).text != before:
            raise HermesError(f"`{name}` was changed meanwhile: nothing was written.")
        return (await shelf.writer.edit(name, after, shelf.by, access.folder)).version


async def skill_versions(access: Access[HomeSystem], name: str) -> list[Version]:
    """A skill's versions, newest first."""
    async with open_skills(access) as shelf:
        await shelf.writer.notice(name, access.folder)
        return await shelf.writer.versions.history(name)


async def skill_diff(access: Access[HomeSystem], name: str, version: int = 0) -> str:
    """The diff of a version (0: the newest). Raises `HermesError`."""
    found = await skill_versions(access, name)
    chosen = next((each for each in found if version in (0, each.id)), None)
    if chosen is None:
        raise HermesError(f"`{name}` has no such version: `hermes skills history {name}` lists them.")
    return diff_of(chosen.change.item, chosen.change.before, chosen.change.after).rstrip("\n")


async def revert_skill(access: Access[HomeSystem], name: str, version: int) -> str:
    """Restore a skill's files to a version, byte for byte. Returns the diff."""
    async with open_skills(access) as shelf:
        await shelf.writer.notice(name, access.folder)
        before = _files(shelf, name)
        await shelf.writer.revert(name, version, shelf.by)
        changed = diffs(before, _files(shelf, name)).rstrip("\n")
        return changed or f"`{name}` is as it was after version {version} already."


async def pin_skill(access: Access[HomeSystem], name: str, *, off: bool = False) -> str:
    """Pin a skill: every new prompt shows it, and only the owner may change it without approval. Returns what was
    done."""
    async with open_skills(access) as shelf:
        await shelf.kept.library.find(name, access.folder)

        def change(state: State) -> State:
            others = tuple(each for each in state.pinned if each != name)
            return msgspec.structs.replace(state, pinned=others if off else (*others, name))

        await shelf.kept.library.state.change(change)
    return f"`{name}` is {'no longer ' if off else ''}pinned, from the next session on."


async def trust_skill(access: Access[HomeSystem], name: str, *, off: bool = False) -> str:
    """Trust a skill to run the commands in its text until the text changes. Returns the commands."""
    async with open_skills(access) as shelf:
        library = shelf.kept.library
        skill = await library.read(await library.find(name, access.folder))

        def change(state: State) -> State:
            others = {key: value for key, value in state.trusted.items() if key != name}
            return msgspec.structs.replace(state, trusted=others if off else {**others, name: hash_of(skill)})

        await library.state.change(change)
        told = "; ".join(commands_of(skill)) or "nothing, it holds no commands"
        return f"`{name}` {'may no longer' if off else 'may now'} run: {told}"


async def copy_skill(access: Access[HomeSystem], name: str) -> str:
    """Copy a bundled, installed or external skill into the home for editing."""
    async with open_skills(access) as shelf:
        done = await shelf.writer.copy(name, shelf.by)
        return f"`{name}` is yours to change: {done.folder}"


async def archive_skill(access: Access[HomeSystem], name: str) -> str:
    """Archive a skill; it can be restored."""
    async with open_skills(access) as shelf:
        await shelf.writer.archive(name, shelf.by)
        return f"`{name}` is archived; `hermes skills restore {name}` restores it."


async def skill_usage(access: Access[HomeSystem]) -> dict[str, Used]:
    """View, use and change counts of each skill."""
    async with open_skills(access) as shelf:
        return dict(sorted((await asyncio.to_thread(shelf.kept.usage.all)).items()))


def _files(shelf: Shelf, name: str) -> dict[str, bytes]:
    folder = shelf.kept.home / name
    return {f"{name}/{path.relative_to(folder)}": path.read_bytes() for path in own_files(folder)}


NAME = place("name", Kind.SKILL)
SKILLS = Noun(
    name="skills",
    offline=True,
    short_help="Read, install and update skills, and undo changes.",
    help="Read, pin and archive skills, and undo changes of them; find and install others.",
    verbs=(
        verb(
            "diff",
            "Show what a version changed; by default the newest.",
            skill_diff,
            NAME,
            place("version", Kind.NUMBER, 0),
        ),
        verb(
            "revert",
            "Restore every file of a skill to a version, to the byte.",
            revert_skill,
            NAME,
            place("version", Kind.NUMBER),
        ),
        verb(
            "pin",
            "Pin a skill: every new prompt names it, and changes to it need your approval.",
            pin_skill,
            NAME,
        ),
        verb("unpin", "Remove the pin of a skill.", partial(pin_skill, off=True), NAME),
        verb(
            "trust",
            "Trust a skill: its commands run while its text is unchanged.",
            trust_skill,
            NAME,
        ),
        verb("untrust", "Trust a skill no more.", partial(trust_skill, off=True), NAME),
        verb(
            "copy",
            "Copy a bundled, installed or external skill into the home, to change it there. Updates are merged "
            "into it.",
            copy_skill,
            NAME,
        ),
        verb("archive", "Archive a skill. Nothing of it is lost.", archive_skill, NAME),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRow:
    """A bundle in a list, or why its file cannot be used (`problem`)."""

    name: str
    skills: tuple[str, ...] = ()
    description: str = ""
    instruction: str = ""
    problem: str = ""

    @property
    def line(self) -> str:
        """The bundle on one line."""
        about = f" {self.description}" if self.description else ""
        return self.problem or f"/{self.name}:{about} ({', '.join(self.skills)})"


async def list_bundles(access: Access[HomeSystem]) -> list[BundleRow]:
    """All bundles, also those that cannot be used."""
    kept = _bundles(access)
    return [_bundle_row(kept, name) for name in kept.names()]


async def show_bundle(access: Access[HomeSystem], name: str) -> Bundle:
    """One bundle. Raises `BadBundle`."""
    return _bundles(access).there(name)


async def add_bundle(
    access: Access[HomeSystem], name: str, skills: Sequence[str], description: str = "", instruction: str = ""
) -> str:
    """Add a bundle of skills that are there, or replace the one with that name. Returns what it does."""
    async with open_skills(access) as shelf:
        for skill in skills:
            await shelf.kept.library.find(skill, access.folder)
    bundle = Bundle(name=name, skills=tuple(skills), description=description, instruction=instruction)
    path = _bundles(access).put(bundle)
    return f"`/{name}` uses {', '.join(skills)} ({path}), as `-s {name}` does, also where `/{name}` is a command."


async def remove_bundle(access: Access[HomeSystem], name: str) -> str:
    """Remove a bundle; its skills stay. Raises `BadBundle`."""
    access.check_owner("Only the owner removes bundles.")
    _bundles(access).remove(name)
    return f"The bundle `{name}` is removed; its skills stay."


def _bundles(access: Access[HomeSystem]) -> Bundles:
    if access.who.standing is Standing.GUEST:
        raise HermesError("Guests see no skills.")
    return bundles_of(access.system.home.skills)


def _bundle_row(kept: Bundles, name: str) -> BundleRow:
    try:
        found = kept.there(name)
    except BadBundle as error:
        return BundleRow(name=name, problem=str(error))
    return BundleRow(name=name, skills=found.skills, description=found.description, instruction=found.instruction)


def _bundle_text(found: Bundle) -> str:
    lines = [f"/{found.name}: {found.description}".rstrip(": "), *(f"- {skill}" for skill in found.skills)]
    return "\n".join([*lines, *filter(None, [found.instruction])])


BUNDLED = Noun(
    name="bundles",
    offline=True,
    short_help="Group skills that are used by one name.",
    help="Group skills: `/NAME words` and `-s NAME` use all skills of a bundle.",
    verbs=(
        verb(
            "list",
            "List the bundles.",
            list_bundles,
            text=lambda found: "\n".join(each.line for each in found) or "There are no bundles.",
        ),
        verb("show", "Show one bundle.", show_bundle, NAME, text=_bundle_text),
        verb(
            "add",
            "Add a bundle of skills, or replace the one with that name.",
            add_bundle,
            NAME,
            place("skills", Kind.NAMES),
            option("description", "--description", "What it is for.", Kind.TEXT, ""),
            option("instruction", "--instruction", "Text to put after the skills.", Kind.TEXT, ""),
        ),
        verb("remove", "Remove a bundle. Its skills stay.", remove_bundle, NAME),
    ),
)
