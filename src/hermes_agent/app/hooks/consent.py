"""What a person allowed to run as a hook: the very content that they saw, by its hash."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from pathlib import Path

from hermes_agent.app.hooks.settings import HookSettings
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.files import read_small, write_private

LARGEST_SCRIPT = 1 << 20
LONGEST_NAME = 1000
WORDS = re.compile(r"(?P<written>>\s*[\"']?)?(?P<word>[^\s\"'`;|&<>(){}$=,]+)")
"""What may name a file anywhere in a command, also within quotes of its own; `written` where it is written to."""
PROGRAMS = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua", ".awk", ".jq")
FOLDER = re.compile(r"\$(?:(?P<bare>HERMES_HOME|PWD|HOME)\b|\{(?P<braced>HERMES_HOME|PWD|HOME)\})")


class Consents:
    """The hashes of what was allowed, in a file of the home; a damaged one allows nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def has(self, name: str, mark: str) -> bool:
        """Whether the hook of that name was allowed as it is now."""
        return self._read().get(name) == mark

    def give(self, name: str, mark: str) -> None:
        """Allow it as it is now. Raises `HomeError`."""
        self._write({**self._read(), name: mark})

    def take_back(self, name: str) -> bool:
        """Allow it no more; False where it was not allowed."""
        known = self._read()
        if known.pop(name, None) is None:
            return False
        self._write(known)
        return True

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(read_small(self._file) or b"{}")
        except ValueError:
            return {}
        return {str(name): str(mark) for name, mark in found.items()} if isinstance(found, dict) else {}

    def _write(self, known: dict[str, str]) -> None:
        write_private(self._file, json.dumps(known, indent=1, sort_keys=True).encode())


def mark_of(hook: HookSettings, root: Path) -> str:
    """The hash of all that decides what a hook does: its settings, and the files that it names. Raises `ConfigError`
    where its file is not there."""
    facts = [repr((hook.on, hook.command, hook.python, hook.tools)).encode()]
    for path in files_of(hook, root):
        content = read_small(path, LARGEST_SCRIPT)
        if content is None:
            raise ConfigError(f"{path} is not there.")
        facts.append(content)
    return hashlib.sha256(b"\0".join(hashlib.sha256(fact).digest() for fact in facts)).hexdigest()


def files_of(hook: HookSettings, root: Path) -> list[Path]:
    """The files whose content is part of a hook: its Python file, or those that its command names: with a path, or as
    programs. What it writes to is none of them."""
    if hook.python:
        return [resolved(hook.python, root)]
    command = FOLDER.sub(lambda it: str(Path.home() if "HOME" in (it["bare"], it["braced"]) else root), hook.command)
    words = [each["word"] for each in WORDS.finditer(command) if not each["written"]] + _shell_words(command)
    named = {word: resolved(word, root) for word in words if len(word) < LONGEST_NAME}
    return [path for word, path in named.items() if path.is_file() and ("/" in word or _is_program(path))]


def _shell_words(command: str) -> list[str]:
    """The words as a shell reads them, which may hold blanks, but where it writes to; none where a quote is open."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    return [word for before, word in zip(["", *words], words, strict=False) if not before.endswith(">")]


def _is_program(path: Path) -> bool:
    return path.suffix in PROGRAMS or os.access(path, os.X_OK)


def resolved(name: str, root: Path) -> Path:
    """A path as a hook's setting means it: from the home, unless it is absolute."""
    return root / Path(name).expanduser()
