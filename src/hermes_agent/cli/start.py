"""Start of `hermes`: parses the command line, reads standard input, and runs the chat, the one-shot mode or a
subcommand. A `HermesError` becomes one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.cli.exits import Exit
from hermes_agent.cli.options import EVERYTHING, Invocation, parse
from hermes_agent.cli.output import remark
from hermes_agent.cli.table import BELOW_AGENT, CHILDS, NO_HOME
from hermes_agent.core.activity import Activity, activity
from hermes_agent.core.errors import HermesError, Refused
from hermes_agent.host.late import late
from hermes_agent.host.paths import environment, find_home, sentence
from hermes_agent.tools.files.content import SNIFFED, binary_kind, image_type, plain_text

if TYPE_CHECKING:
    from hermes_agent.app.intake import Spooled

SPOOL = "hermes_agent.app.intake:spool"
PATIENCE = 3.0
"""Seconds after which a pipe that brings nothing is spoken of: a forgotten one would look like a hang."""
MOST_HELD = 4 * 1024 * 1024
"""Bytes that are held in memory; more than that is a message in no model's window."""
MOST_READ = 1_000_000_000
"""Bytes that are read at all: what never ends would fill the disk."""
PIECE = 1024 * 1024


def read_stdin(prompt: str, folder: Path, most: int = MOST_READ) -> str | Spooled:
    """The content of standard input if it is a pipe or file; empty for a terminal or /dev/null.

    Text is returned with invalid UTF-8 replaced. A picture, other binary data, or more than `MOST_HELD` bytes are
    saved as a file in `folder`. Raises `HomeError` if that cannot be written.
    """
    try:
        handle = sys.stdin.fileno()
        kind = os.fstat(handle).st_mode
    except (AttributeError, OSError, ValueError):
        return ""
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    pieces, held = _read(handle, most, asked=bool(prompt)), b""
    for piece in pieces:
        held += piece
        if len(held) > MOST_HELD:
            break
    if len(held) <= MOST_HELD and not (image_type(held) or binary_kind(held[:SNIFFED])):
        return plain_text(held)
    spooled: Spooled = late(SPOOL)(folder, _joined(held, pieces))
    return spooled


def _joined(held: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield held
    yield from pieces


def _read(handle: int, most: int, *, asked: bool) -> Iterator[bytes]:
    """The content in pieces; tells the person once if it takes long, and if it is truncated."""
    size, told = 0, False
    while size < most:
        if (asked or size) and not told and not select.select([handle], [], [], PATIENCE)[0]:
            told = True
            came = f", of which {size:,} bytes came" if size else ""
            remark(f"Waiting for the rest of the prompt on standard input{came} (`< /dev/null` if there is none).")
        piece = os.read(handle, PIECE)
        if not piece:
            return
        size += len(piece)
        yield piece
    cut = f"Standard input was cut after {size:,} bytes; what came later was not read."
    remark(cut)
    yield f"\n[{cut}]\n".encode()


SURFACES: Mapping[str, str] = {
    "chat": "hermes_agent.cli.chat:run",
    "commands": "hermes_agent.cli.group:run",
    "one-shot": "hermes_agent.cli.oneshot:run",
}
COMPLETION = "_HERMES_COMPLETE"
UNWRITTEN = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT})
"""What writing our output ends with where its reader or its disk is at an end."""


def start(arguments: Sequence[str]) -> int:
    """Run a command line. Returns an `Exit` code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    activity.set(Activity(notify=remark))
    try:
        invocation = None if COMPLETION in environment() else parse(arguments)
        code = run_surface("commands", arguments) if invocation is None else converse(invocation)
        sys.stdout.flush()
    except HermesError as error:
        remark(str(error))
        return Exit.of_error(type(error))
    except KeyboardInterrupt:
        return Exit.STOPPED
    except OSError as error:
        return unwritten(error)
    return code


def unwritten(error: OSError) -> int:
    """The exit code for a failed write to our output, or another system error, which is shown. Re-raises errors
    without an errno."""
    if error.errno is None:
        raise error
    if error.errno not in UNWRITTEN or error.filename is not None:
        remark(sentence(error))
        return Exit.FAILED
    if error.errno != errno.EPIPE:  # Where who read our output has left, nobody is to be told.
        remark(f"The output could not be written: {error.strerror}.")
    # What is still buffered must not raise again when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.FAILED


def converse(invocation: Invocation) -> int:
    """Run one-shot mode or the chat."""
    if late(BELOW_AGENT)():
        check_child(invocation)
    if EVERYTHING in invocation.allow:
        remark("`--allow '*'` allows every call that would need your approval, as --yolo does.")
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    if invocation.question is None and at_terminal and not (invocation.json or invocation.result or invocation.files):
        return run_surface("chat", invocation)
    came = read_stdin(invocation.prompt, find_home(invocation.profile).cache / "input")
    asked = replace(
        invocation, question=invocation.prompt.strip(), piped=came.strip() if isinstance(came, str) else came
    )
    if not (asked.prompt or asked.piped or asked.files or asked.resume or asked.go_on):
        remark("There is no prompt. Use `hermes -z PROMPT`, or pipe one in. `hermes --help` lists everything else.")
        return Exit.USAGE
    return run_surface("one-shot", asked)


def check_child(invocation: Invocation) -> None:
    """Raise `Refused` for what a command of the agent may not start."""
    if not os.access(find_home(invocation.profile).root, os.R_OK):
        raise Refused(NO_HOME)
    if invocation.question is None or invocation.allowed:
        what = "`--allow` and `--yolo` are" if invocation.allowed else "The chat is"
        raise Refused(f"{what} the owner's: {CHILDS}")


def run_surface(name: str, given: Sequence[str] | Invocation) -> int:
    """Have a surface of the table do what it was given; its exit code."""
    code: int = late(SURFACES[name])(given)
    return code
