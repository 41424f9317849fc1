"""Bundles: skills that belong together, used by one name; small YAML files that a person may write."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.core.errors import ToolError
from hermes_agent.host.files import PRIVATE_FOLDER, read_small, write_private
from hermes_agent.host.late import late
from hermes_agent.skills.format import name_problems

FOLDER = "skill-bundles"
MOST_SKILLS = 8
LARGEST = 1 << 16


class BadBundle(ToolError):
    """A bundle that cannot be used, or is not there."""

    kind = "bad_bundle"


class Bundle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`skills` in the order in which they are put in; `instruction` is said after them."""

    name: str
    skills: tuple[str, ...]
    description: str = ""
    instruction: str = ""


class Bundles:
    """The bundles of one home, `skill-bundles/NAME.yaml`. Blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Those there are, by name, also broken ones."""
        return sorted(path.stem for path in self._folder.glob("*.yaml")) if self._folder.is_dir() else []

    def get(self, name: str) -> Bundle | None:
        """The bundle of that name; None where there is none. Raises `BadBundle` for a file that is none."""
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
        """Write a bundle, new or in place of another; its file. Raises `BadBundle`."""
        if problems := _problems(bundle):
            raise BadBundle(" ".join(problems))
        self._folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        path = self._folder / f"{bundle.name}.yaml"
        plain = {key: value for key, value in msgspec.to_builtins(bundle).items() if value}
        text = late("yaml").safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
        write_private(path, text.encode())
        return path

    def remove(self, name: str) -> None:
        """Take a bundle away; its skills stay. Raises `BadBundle`."""
        if name not in self.names():
            self.there(name)
        (self._folder / f"{name}.yaml").unlink()


def bundles_of(skills: Path) -> Bundles:
    """The bundles of the home whose folder of skills this is."""
    return Bundles(skills.parent / FOLDER)


def _read(content: bytes, path: Path) -> Bundle:
    try:
        fields: Any = late("yaml").safe_load(content)  # Parsed here: what comes out is a Bundle.
        named = {"name": path.stem, **fields} if isinstance(fields, dict) else fields
        bundle = msgspec.convert(named, Bundle)
    except (late("yaml").YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
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
