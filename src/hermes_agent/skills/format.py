"""Parser of SKILL.md: YAML frontmatter and Markdown, by the rules of the Agent Skills format (agentskills.io)."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.core.errors import ToolError
from hermes_agent.host.late import libraries
from hermes_agent.skills.skill import FILE, FOLDERS, Ours, Skill, SkillHeader

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_COMPATIBILITY = 500
LONGEST_TEXT = 100_000
"""Characters of a SKILL.md."""
FIELDS = ("name", "description", "license", "allowed-tools", "metadata", "compatibility")
FENCE = "---"


class BadSkill(ToolError):
    """An invalid skill; the text names every reason."""

    kind = "bad_skill"


def read(text: str, folder: str) -> Skill:
    """Parses a SKILL.md; `folder` is the name of its folder. Raises `BadSkill`."""
    if len(text) > LONGEST_TEXT:
        raise BadSkill(f"SKILL.md has {len(text):,} characters; at most {LONGEST_TEXT:,} are read.")
    head, body = split(text)
    fields = _fields(head)
    found = [*problems(fields, folder), *_our_problems(fields)]
    if found:
        raise BadSkill(" ".join(found))
    tools = fields.get("allowed-tools", ())
    return Skill(
        name=name_of(fields),
        description=str(fields["description"]).strip(),
        body=body,
        text=text,
        license=str(fields.get("license", "")),
        compatibility=str(fields.get("compatibility", "")),
        allowed_tools=tuple(tools.split() if isinstance(tools, str) else map(str, tools)),
        beyond=strangers(fields),
        ours=_ours(fields),
    )


def split(text: str) -> tuple[str, str]:
    """The frontmatter without its fences, and the rest. Raises `BadSkill`."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != FENCE:
        raise BadSkill("SKILL.md does not begin with frontmatter: its first line must be `---`.")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip("\n")
    raise BadSkill("The frontmatter of SKILL.md is never closed: a line `---` must follow it.")


def problems(fields: Mapping[str, Any], folder: str = "") -> list[str]:
    """Violations of the format in these fields, a sentence each. Unknown fields are allowed; see `strangers`."""
    found = _name_problems(fields, folder)
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        found.append("`description` is missing: say what the skill does and when to use it.")
    elif len(description) > LONGEST_DESCRIPTION:
        found.append(f"`description` has {len(description):,} characters; at most {LONGEST_DESCRIPTION:,} are allowed.")
    compatibility = fields.get("compatibility", "")
    if not isinstance(compatibility, str):
        found.append("`compatibility` must be a text.")
    elif len(compatibility) > LONGEST_COMPATIBILITY:
        found.append(f"`compatibility` has {len(compatibility)} characters; at most {LONGEST_COMPATIBILITY}.")
    tools = fields.get("allowed-tools", "")
    if not isinstance(tools, str) and not (isinstance(tools, list) and all(isinstance(each, str) for each in tools)):
        found.append("`allowed-tools` must be a text or a list of texts.")
    return found


def strangers(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields beyond the format; kept, and reported when a skill is published."""
    return tuple(sorted(str(field) for field in fields if field not in FIELDS))


def name_of(fields: Mapping[str, Any]) -> str:
    """The normalised name, for comparisons."""
    return unicodedata.normalize("NFKC", str(fields.get("name", "")).strip())


def name_problems(name: str) -> list[str]:
    """Errors in a name, a sentence each. Letters of any script are allowed."""
    found = [] if name else ["The name is empty."]
    if len(name) > LONGEST_NAME:
        found.append(f"The name `{name[:80]}` has {len(name)} characters; at most {LONGEST_NAME} are allowed.")
    if name != name.lower():
        found.append(f"The name `{name[:80]}` must be lower case.")
    if name.startswith("-") or name.endswith("-"):
        found.append("The name must not begin or end with a hyphen.")
    if "--" in name:
        found.append("The name must not hold two hyphens in a row.")
    if not all(each.isalnum() or each == "-" for each in name):
        found.append(f"The name `{name[:80]}` may hold letters, digits and hyphens alone.")
    return found


def _name_problems(fields: Mapping[str, Any], folder: str) -> list[str]:
    raw = fields.get("name")
    if not isinstance(raw, str) or not raw.strip():
        return ["`name` is missing."]
    name = name_of(fields)
    found = name_problems(name)
    if folder and unicodedata.normalize("NFKC", folder) != name:
        found.append(f"The folder `{folder[:80]}` must have the skill's name, `{name[:80]}`.")
    return found


def _fields(head: str) -> Mapping[str, Any]:
    # Every scalar is a text, so that `name: 007` and `version: 1.10` are what they look like.
    yaml = libraries.yaml
    try:
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # builds texts, lists and maps alone
        found = yaml.load(head, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        raise BadSkill(f"The frontmatter is not YAML{where}: {getattr(error, 'problem', None) or error}.") from error
    except RecursionError as error:
        raise BadSkill("The frontmatter is nested too deeply.") from error
    if not isinstance(found, dict):
        raise BadSkill("The frontmatter must be a map of fields: `name: ...`, `description: ...`.")
    return found


def _our_problems(fields: Mapping[str, Any]) -> list[str]:
    metadata = fields.get("metadata", {})
    if metadata != "" and not isinstance(metadata, dict):
        return ["`metadata` must be a map."]
    try:
        _ours(fields)
    except msgspec.ValidationError as error:
        return [f"`metadata.hermes` does not fit: {error}."]
    return []


def _ours(fields: Mapping[str, Any]) -> Ours:
    metadata = fields.get("metadata") or {}
    ours = metadata.get("hermes") or {}
    if isinstance(ours, dict):
        ours = {key: _listed(value) if key in _LISTS else value for key, value in ours.items()}
    return msgspec.convert(ours, Ours, strict=False)


_LISTS = {
    field.name for field in msgspec.structs.fields(Ours) if field.name not in ("category", "parameters", "blueprint")
}


def _listed(value: object) -> object:
    """A list where one word, or words with commas, stand for it; the names where each is a map with its `name`."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    if isinstance(value, list):
        return [each.get("name", "") if isinstance(each, dict) else each for each in value]
    return value


def text_of(path: Path) -> str:
    """Reads a SKILL.md. Raises `BadSkill` where it is no text, too large, or a link out of its folder."""
    try:
        if path.is_symlink() and not path.resolve().is_relative_to(path.parent.resolve()):
            raise BadSkill("SKILL.md is a link that leads out of the skill's folder.")
        if not path.is_file():
            raise BadSkill("SKILL.md is not a file.")
        if path.stat().st_size > LONGEST_TEXT * 4 + 4:
            raise BadSkill(f"SKILL.md has {path.stat().st_size:,} bytes; at most {LONGEST_TEXT:,} characters are read.")
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise BadSkill("SKILL.md is not UTF-8 text.") from error
    except (OSError, RuntimeError) as error:
        raise BadSkill(f"SKILL.md cannot be read ({error}).") from error


LARGEST_FILE = 1 << 20
"""Bytes of a support file."""
MOST_FILES = 200


def filled(text: str, variables: Mapping[str, str]) -> str:
    """The text with `${NAME}` replaced by the variables; unknown names stay."""
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def variables_of(header: SkillHeader, session: str) -> dict[str, str]:
    """The variables for a skill's text."""
    return {"HERMES_SKILL_DIR": header.folder, "HERMES_SESSION_ID": session}


def whole(header: SkillHeader, skill: Skill, session: str) -> str:
    """A skill as text for the model: path, slots, files, body. Commands are not run."""
    lines = [f"# Skill {skill.name} ({header.layer.value}; folder {header.folder})"]
    lines += [f"Slot {{{{{each.name}}}}}: {each.description or each.type}" for each in skill.ours.parameters]
    if skill.ours.required_environment_variables:
        lines.append(f"Needs the environment variables {', '.join(skill.ours.required_environment_variables)}.")
    if files := files_of(header.path):
        lines.append(f"Files (skill_view(name, file)): {', '.join(files)}")
    return "\n".join([*lines, "", filled(skill.body, variables_of(header, session))])


def files_of(folder: Path) -> list[str]:
    """The files beside SKILL.md, relative to the folder, by name; other publishers also use other folders than the
    four."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        paths = (Path(place, name) for name in names if not name.startswith("."))
        found += [str(path.relative_to(folder)) for path in paths if path.is_file() and not path.is_symlink()]
        if len(found) > MOST_FILES:
            break
    return sorted(each for each in found if each != FILE)[:MOST_FILES]


def inside(folder: Path, name: str, *, anywhere: bool = False) -> Path:
    """The path of a support file. Raises `ToolError` for one outside the four folders (`anywhere`: outside the
    skill), or a link out of the skill."""
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
