"""Changes files by compare-and-swap: one or several at once, all of them or none, told the same after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import StaleWrite, ToolError
from hermes_agent.core.tool import CallContext
from hermes_agent.host.late import late
from hermes_agent.tools.files.content import coding_of, storable
from hermes_agent.tools.files.diff import unified
from hermes_agent.tools.files.guard import Guard
from hermes_agent.tools.files.readlog import ReadLog, content_hash
from hermes_agent.tools.files.writing import Version, Writer, version_of

PROBLEM = "hermes_agent.tools.files.checking:new_problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A wish to change the file at `path`. `make` gives the new content (None: no file) and what to say of it;
    `blind` allows a file that this session has never read; `removes` tells that `make` leaves no file."""

    path: str
    make: Callable[[Version], tuple[bytes | None, str]]
    blind: bool
    removes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    real: Path
    path: str
    before: Version
    content: bytes | None
    answer: str
    key: str


class Changer:
    """Changes the files that `guard` allows. The intent of each change is in `log` before its file changes, so that a
    call that is made again after a crash finds out that it had happened."""

    def __init__(self, *, guard: Guard, log: ReadLog, writer: Writer) -> None:
        self._guard = guard
        self._log = log
        self._writer = writer

    def swap(self, context: CallContext, changes: Sequence[Change]) -> str:
        """Make the changes and say what they were. Where one cannot be made, none is. Blocks: call it in a thread."""
        answers: list[str] = []
        ready: list[_Ready] = []
        for number, change in enumerate(changes):
            found = self._prepared(context, change, key=context.key if len(changes) == 1 else f"{context.key}#{number}")
            answers.append(found if isinstance(found, str) else found.answer)
            ready += [] if isinstance(found, str) else [found]
        for each in ready:
            digest = "" if each.content is None else content_hash(each.content)
            self._log.intend(context.session, each.real, key=each.key, digest=digest, answer=each.answer)
        self._write_all(context.session, ready)
        return "\n".join(filter(None, answers))

    def _prepared(self, context: CallContext, change: Change, *, key: str) -> _Ready | str:
        """The change ready to be written, or its answer where an earlier attempt of the same call made it."""
        real = self._guard.locate(change.path, context.workspace, writes=True)
        before = version_of(real, change.path)
        earlier = self._log.intended(context.session, real, key=key)
        if earlier is not None and before.digest == earlier.hash:
            self._log.saw(context.session, real, earlier.hash)
            return earlier.answer
        self._check_known(change, real, before, context.session)
        content, done = change.make(before)
        answer = f"{done}{_change_report(before, content, change.path)}"
        return _Ready(real=real, path=change.path, before=before, content=content, answer=answer, key=key)

    def _check_known(self, change: Change, real: Path, before: Version, session: str) -> None:
        known = self._log.known(session, real)
        if before.content in (None, b"") or known == before.digest or (change.blind and not known):
            return
        happened = "changed since it was read" if known else "exists and was not read in this conversation"
        raise StaleWrite(f"{change.path} {happened}; nothing was written.", hint="Read it, then write again.")

    def _write_all(self, session: str, ready: Sequence[_Ready]) -> None:
        written: list[_Ready] = []
        try:
            for each in ready:
                self._put(each, each.content, each.before)
                written.append(each)
        except ToolError as error:
            stuck = [each.path for each in reversed(written) if not self._put_back(each)]
            if not written:
                raise
            rest = f"{', '.join(stuck)} could not be put back" if stuck else "the other files are as they were"
            raise ToolError(f"{error} {rest[0].upper()}{rest[1:]}.", hint=error.hint) from error
        for each in ready:
            self._log.saw(session, each.real, "" if each.content is None else content_hash(each.content))

    def _put(self, each: _Ready, content: bytes | None, over: Version) -> None:
        if content is None:
            self._writer.remove(each.real, each.path, over=over)
        else:
            self._writer.swap(each.real, each.path, content, over=over)

    def _put_back(self, each: _Ready) -> bool:
        """Undo a change where nobody has changed the file since; whether that worked."""
        with suppress(ToolError):
            now = version_of(each.real, each.path)
            if now.content == each.content:
                self._put(each, each.before.content, now)
                return True
        return False


def _change_report(before: Version, content: bytes | None, path: str) -> str:
    """What the model reads of a change beside its sentence: errors that came with it, and the difference."""
    if content is None:
        return ""
    if before.content == content:
        return " The content is the same as before."
    new = _readable(content)
    old = None if before.content is None else _readable(before.content)
    problem = late(PROBLEM)(path, old, new)
    words = f" {problem}" if problem else ""
    return words if old is None else f"{words}\n{unified(old, new, path)}"


def _readable(content: bytes) -> str:
    return storable(coding_of(content).decode(content).replace("\r\n", "\n"))
