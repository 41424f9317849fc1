"""What a call of `patch` wants of each file: text put in place of other text, or the hunks of a patch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.edits import replace
from hermes_agent.core.errors import ToolError
from hermes_agent.tools.files.changes import Change
from hermes_agent.tools.files.content import binary_kind, coding_of, newline_of
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.hunks import apply_hunks
from hermes_agent.tools.files.patches import FilePatch, parse_patch
from hermes_agent.tools.files.reading import missing
from hermes_agent.tools.files.writing import Version, version_of

# What is done to the text of a file: its new text, and what was overlooked or how often.
_Edit = Callable[[str], tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Makes changes of what a model asked for."""

    guard: Guard
    workspace: str

    def replacing(self, path: str, old: str, new: str, *, everywhere: bool) -> Change:
        """`new` in place of `old`."""

        def edit(text: str) -> tuple[str, str]:
            done = replace(text, old.replace("\r\n", "\n"), new.replace("\r\n", "\n"), everywhere=everywhere)
            places = "" if done.count == 1 else f" at {done.count} places"
            return done.content, f"{places}{'' if done.strategy == 'exact' else f' ({done.strategy})'}"

        return self._editing(path, edit)

    def of_patch(self, text: str) -> list[Change]:
        """The changes of a patch; what is removed comes last, so that a crash in between loses nothing."""
        changes = [change for each in parse_patch(text) for change in self._of(each)]
        return sorted(changes, key=lambda change: change.removes)

    def _of(self, wanted: FilePatch) -> Iterator[Change]:
        def edit(text: str) -> tuple[str, str]:
            content, note = apply_hunks(text, wanted.hunks, wanted.path)
            return content, f" ({note})" if note else ""

        match wanted.kind:
            case "add":
                yield Change(path=wanted.path, make=lambda before: _added(before, wanted), blind=True)
            case "delete":
                yield _removing(wanted.path, f"Removed {wanted.path}.")
            case "update" if wanted.moved:
                yield Change(path=wanted.moved, make=lambda before: self._moved(before, wanted, edit), blind=True)
                yield _removing(wanted.path, "")
            case "update":
                yield self._editing(wanted.path, edit)

    def _editing(self, path: str, edit: _Edit) -> Change:
        def make(before: Version) -> tuple[bytes, str]:
            content, note = self._edited(before, path, edit)
            return content, f"Patched {path}{note}."

        return Change(path=path, make=make, blind=True)

    def _moved(self, before: Version, wanted: FilePatch, edit: _Edit) -> tuple[bytes, str]:
        if before.content is not None:
            raise ToolError(f"{wanted.moved} exists already; {wanted.path} was not moved there.")
        source = version_of(self.guard.locate(wanted.path, self.workspace, writes=True), wanted.path)
        content, note = self._edited(source, wanted.path, edit)
        return content, f"Moved {wanted.path} to {wanted.moved}{note}."

    def _edited(self, before: Version, path: str, edit: _Edit) -> tuple[bytes, str]:
        """The content after the edit, in the file's own coding and with its own line ends."""
        if before.content is None:
            raise missing(Path(self.guard.locate(path, self.workspace)), path)
        if binary_kind(before.content[:8192]):
            raise ToolError(f"{path} is {binary_kind(before.content[:8192])}, not text.")
        coding = coding_of(before.content)
        text = coding.decode(before.content)
        crlf = newline_of(text) == "\r\n" and text.count("\n") == text.count("\r\n")
        done, note = edit(text.replace("\r\n", "\n") if crlf else text)
        _check_characters(done, text)
        return coding.encode(done.replace("\n", "\r\n") if crlf else done), note


def _added(before: Version, wanted: FilePatch) -> tuple[bytes, str]:
    if before.content is not None:
        raise ToolError(f"{wanted.path} exists already.", hint="Change it with `*** Update File: `.")
    _check_characters(wanted.content, "")
    return wanted.content.encode(), f"Created {wanted.path}, {wanted.content.count(chr(10))} lines."


def _removing(path: str, words: str) -> Change:
    def make(before: Version) -> tuple[None, str]:
        if before.content is None:
            raise ToolError(f"{path} does not exist and cannot be removed.")
        return None, words

    return Change(path=path, make=make, blind=True, removes=True)


def _check_characters(text: str, before: str) -> None:
    """Raise `ToolError` for half a character that the model wrote; those that stand for a file's own bytes may stay."""
    halves = {character for character in text if "\ud800" <= character <= "\udfff"}
    if halves - set(before):
        raise ToolError("The text holds half of a surrogate pair, which no file can hold.")
