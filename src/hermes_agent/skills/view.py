"""Reading a skill: its body with the variables filled in, its support files, nothing run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hermes_agent.core.errors import ToolError
from hermes_agent.skills.format import BadSkill
from hermes_agent.skills.skill import FILE, FOLDERS, Skill, SkillHeader

LARGEST_FILE = 1 << 20
"""Bytes of a support file."""
MOST_FILES = 200


def filled(text: str, variables: Mapping[str, str]) -> str:
    """The text with `${NAME}` replaced by what the variables say; other names stay as they are."""
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def variables_of(header: SkillHeader, session: str) -> dict[str, str]:
    """What a skill's text may ask for."""
    return {"HERMES_SKILL_DIR": header.folder, "HERMES_SESSION_ID": session}


def whole(header: SkillHeader, skill: Skill, session: str) -> str:
    """A skill as the model reads it: where it stands, its slots, its files, then its body. Commands in it are text."""
    lines = [f"# Skill {skill.name} ({header.layer.value}; folder {header.folder})"]
    lines += [f"Slot {{{{{each.name}}}}}: {each.description or each.type}" for each in skill.ours.parameters]
    if skill.ours.required_environment_variables:
        lines.append(f"Needs the environment variables {', '.join(skill.ours.required_environment_variables)}.")
    if files := files_of(header.path):
        lines.append(f"Files (skill_view(name, file)): {', '.join(files)}")
    return "\n".join([*lines, "", filled(skill.body, variables_of(header, session))])


def files_of(folder: Path) -> list[str]:
    """The files beside SKILL.md, relative to the folder, by name; others put some outside the four folders."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        paths = (Path(place, name) for name in names if not name.startswith("."))
        found += [str(path.relative_to(folder)) for path in paths if path.is_file() and not path.is_symlink()]
        if len(found) > MOST_FILES:
            break
    return sorted(each for each in found if each != FILE)[:MOST_FILES]


def inside(folder: Path, name: str, *, anywhere: bool = False) -> Path:
    """The path of a support file. Raises `ToolError` for one outside the four folders (`anywhere`: outside the skill),
    or that a link leads out of the skill."""
    parts = Path(name).parts
    apart = not anywhere and (len(parts) < 2 or parts[0] not in FOLDERS)
    if apart or "\0" in name or Path(name).is_absolute() or not parts or any(each.startswith(".") for each in parts):
        where = "inside the skill" if anywhere else f"in {', '.join(FOLDERS)}, inside the skill"
        raise ToolError(f"`{name[:200]}` is not a support file: those stand {where}.")
    path = folder.joinpath(*parts)
    step = folder
    for part in parts:
        step /= part
        if step.is_symlink():
            raise ToolError(f"`{name[:200]}` leads through a link; a skill's files are its own.")
    return path


def file_text(header: SkillHeader, name: str) -> str:
    """The text of a support file, or of SKILL.md. Raises `ToolError`."""
    path = inside(header.path, name, anywhere=True)
    if not path.is_file():
        files = ", ".join(files_of(header.path)) or "none"
        raise ToolError(f"The skill `{header.name}` has no file `{name[:200]}`.", hint=f"Its files: {files}.")
    if path.stat().st_size > LARGEST_FILE:
        raise ToolError(f"`{name}` has {path.stat().st_size:,} bytes; at most {LARGEST_FILE:,} are shown.")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        return f"{path} is a binary file of {path.stat().st_size:,} bytes."
    except OSError as error:
        raise BadSkill(f"`{name}` cannot be read ({error}).") from error
