"""What reading knows at one point of a command: variables, functions, aliases, files written, the folder."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.core.dataclass import dataclass
from hermes_agent.tools.syntax.known import output_of
from hermes_agent.tools.syntax.simple import NAME, PIPE, VARIABLE, Simple, is_known

if TYPE_CHECKING:
    from tree_sitter import Node

_FETCHERS = {"curl", "wget", "aria2c", "scp", "rsync", "ftp", "nc", "ncat", "fetch", "base64", "openssl", "xxd", "http"}
# Variables that every shell has, as far as they matter here.
GIVEN = {
    "HOME": "~",
    "PWD": ".",
    "IFS": " ",
    **dict.fromkeys(("UID", "EUID", "PPID", "RANDOM", "SECONDS", "LINENO", "HOSTNAME", "USER", "LOGNAME"), NAME),
    **dict.fromkeys(("?", "$", "!", "#", "-", "_", "BASHPID", "EPOCHSECONDS", "COLUMNS", "LINES"), NAME),
}


@dataclass(slots=True, kw_only=True)
class Scope:
    """Names and what they stand for. `files` holds what this command wrote: path to content, None where the content is
    not known."""

    folder: str
    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Node] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    calling: tuple[str, ...] = ()

    def value(self, name: str) -> str:
        """What a variable holds; `VARIABLE` where that is not known."""
        return self.variables.get(name, GIVEN.get(name, VARIABLE))

    def inner(self) -> Scope:
        """The scope of a subshell: what changes there stays there."""
        return replace(self, variables=dict(self.variables), functions=dict(self.functions), aliases=dict(self.aliases))

    def go_to(self, words: tuple[str, ...]) -> None:
        """Follow a `cd`."""
        to = next((word for word in words if not word.startswith("-") or word == "-"), "~")
        if to == "-" or to[:1] in ("~", VARIABLE) or self.folder[:1] in ("~", VARIABLE):
            self.folder = to if to[:1] != "-" else VARIABLE
        else:
            self.folder = os.path.normpath(Path(self.folder) / to)

    def path(self, path: str) -> str:
        """A path as the key of `files`."""
        return os.path.normpath(Path(self.folder) / path)

    def note_files(self, simple: Simple) -> None:
        """Remember what this command puts into files, for when it runs them."""
        fetched = simple.program in _FETCHERS or any(program in _FETCHERS for program in simple.fed_by)
        content = output_of(simple)
        targets = list(simple.writes)
        if simple.program == "tee":
            targets, content = [*targets, *simple.operands], simple.stdin
        for path in targets:
            self.files[self.path(path)] = None if content is None and fetched else (content or "")
        if fetched:
            named = (simple.value("-o", "--output", "-O", "--output-document"), *_last_parts(simple))
            self.files.update({self.path(path): None for path in named if path})
        if simple.program in ("mv", "cp", "install") and len(simple.operands) == 2:
            source, target = map(self.path, simple.operands)
            if source in self.files:
                self.files[target] = self.files[source]


def _last_parts(simple: Simple) -> Iterator[str]:
    """The names that a download gets by itself: the last part of its address."""
    if simple.program == "wget" or simple.has("O", "--remote-name"):
        yield from (word.rpartition("/")[2] for word in simple.operands if is_known(word) and PIPE not in word)
