"""Slash commands on sessions: /new /resume /sessions /branch /title /undo /retry /history; and /rollback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hermes_agent.app.commands.command import Desk, Done, command
from hermes_agent.app.operations.checkpoints import checkpoints_of, line_of, restore_report
from hermes_agent.app.operations.sessions import (
    branch_session,
    list_sessions,
    rename_session,
    resume_session,
    start_session,
    undo_messages,
)
from hermes_agent.core.clock import moment
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Compacted, Entry, MessageTaken, Replied, ToolEnded, Undone
from hermes_agent.core.messages import File, Image, Message, Role, Text, ToolResult
from hermes_agent.core.shown import additions, plural, words_of

SHOWN, SHOWN_WHOLE = 400, 200_000
"""Characters of one message."""


def counted(rest: str, otherwise: int) -> int:
    """Parse a count, at least 1; `otherwise` if the line has none."""
    return max(1, int(rest)) if rest.isdecimal() else otherwise


@command("new", "Start a new session.", arguments="[title]")
async def new(desk: Desk, rest: str) -> Done:
    """Start another session in the same conversation."""
    record = await start_session(desk.access, desk.inbound.conversation, desk.record, rest)
    return Done(text=f"New session {record.id}.", session=record.id)


@command("resume", "Continue an earlier session.", arguments="[id or title]")
async def resume(desk: Desk, rest: str) -> Done:
    """Continue an earlier session, by id or title."""
    if not rest:
        return await sessions.act(desk, rest)
    record = await resume_session(desk.access, desk.inbound.conversation, rest)
    return Done(text=f"Resumed {record.id}{f' ({record.title})' if record.title else ''}.", session=record.id)


@command("sessions", "List the latest sessions.", arguments="[how many]", while_running=True)
async def sessions(desk: Desk, rest: str) -> Done:
    """List the latest sessions of this principal."""
    lines = [
        f"{record.id}  {moment(record.updated)}  {record.title or '(untitled)'}"
        for record in await list_sessions(desk.access, counted(rest, 15))
    ]
    return Done(text="\n".join(lines) or "No sessions yet.")


@command("branch", "Copy this session and continue in the copy.", arguments="[title]")
async def branch(desk: Desk, rest: str) -> Done:
    """Copy this session up to now and continue in the copy."""
    record = await branch_session(desk.access, desk.record.id, rest)
    return Done(text=f"Branched into {record.id}.", session=record.id)


@command("title", "Show or set the session's title.", arguments="[title]", while_running=True)
async def title(desk: Desk, rest: str) -> Done:
    """Show or set the session's title."""
    if not rest:
        return Done(text=desk.record.title or "(untitled)")
    await rename_session(desk.access, desk.record.id, rest)
    return Done(text=f"Titled “{rest}”.")


@command("undo", "Undo the last exchange.", arguments="[how many]")
async def undo(desk: Desk, rest: str) -> Done:
    """Undo the last exchange, or the last N."""
    undone = await undo_messages(desk.access, desk.record.id, counted(rest, 1))
    return Done(text=f"Undid {plural(len(undone), 'message')}; the log keeps all.")


@command("retry", "Ask again, with other words if given.", arguments="[words]")
async def retry(desk: Desk, rest: str) -> Done:
    """Undo the last exchange and ask again, with other words if given."""
    [last] = await undo_messages(desk.access, desk.record.id)
    if not rest and isinstance(last.event, MessageTaken):
        said_before = tuple(part for part in last.event.message.parts if isinstance(part, Text | Image | File))
        return Done(submit=replace(desk.inbound, parts=said_before))
    return Done(submit=desk.message(rest))


WHO = {Role.USER: "you", Role.ASSISTANT: "agent", Role.TOOL: "tool"}


@command(
    "history",
    "Show the conversation as the model sees it; --full shows all of it.",
    arguments="[--full]",
    while_running=True,
)
async def history(desk: Desk, rest: str) -> Done:
    """Show the conversation as the model sees it; with `--full` the whole log, including compacted and undone
    messages."""
    if rest == "--full":
        pages = desk.hermes.store.history.pages(desk.record.id)
        lines = [line async for page in pages for line in _logged(page)]
    else:
        lines = [_line(message, SHOWN) for message in (await desk.hermes.view(desk.record.id)).messages]
    return Done(text="\n".join(filter(None, lines)) or "Nothing was said yet.")


def _logged(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        match entry.event:
            case MessageTaken(message=message) | Replied(message=message) | ToolEnded(message=message):
                line = _line(message, SHOWN_WHOLE)
                yield f"#{entry.number} {line}" if line else ""
            case Compacted(before=before, after=after):
                yield f"#{entry.number} (compacted for the model: {before:,} to {after:,} tokens)"
            case Undone(to=to):
                yield f"#{entry.number} (undone: everything after #{to})"
            case _:
                pass


def _line(message: Message, longest: int) -> str:
    """A message under its author, its lines kept; empty for a note of the runtime."""
    if message.is_runtime:
        return ""
    calls = ", ".join(call.name for call in message.tool_calls)
    text = "\n".join(_texts(message)).strip("\n")
    words = f"{text[:longest]} [{len(text) - longest:,} characters more]" if len(text) > longest else text
    added = "".join(f"\n+ {label}" for label in additions(message))
    whole = f"{words}{f' (calls {calls})' if calls else ''}{added}".strip()
    return f"{WHO[message.role]}: " + whole.replace("\n", "\n  ") if whole else ""


def _texts(message: Message) -> Iterable[str]:
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    return results or [words_of(message)]


LISTED = 15
USAGE = "Say `/rollback` for the list, `/rollback N [FILE]`, or `/rollback diff N [FILE]`."


@command(
    "rollback", "Restore files to a checkpoint; without a number, list the checkpoints.", arguments="[diff] [n] [file]"
)
async def rollback(desk: Desk, rest: str) -> Done:
    """List the checkpoints of the working folder, show the diff to one, or restore files from one."""
    root, words = Path(desk.record.workspace), rest.split(maxsplit=2)
    kept = checkpoints_of(desk.runtime.home, desk.runtime.settings.checkpoints, desk.runtime.clock)
    shows_diff = bool(words) and words[0] == "diff"
    number, *more = (words[1:] or [""]) if shows_diff else rest.split(maxsplit=1) or [""]
    if not rest:
        found = await kept.of(root)
        lines = [line_of(each) for each in found[:LISTED]]
        return Done(text="\n".join(lines) if lines else "No checkpoint of this folder was taken yet.")
    if not number.isdecimal():
        raise HermesError(USAGE)
    file = more[0].strip() if more else ""
    if shows_diff:
        return Done(text=await kept.diff(root, int(number), file) or f"Nothing changed since checkpoint {number}.")
    return Done(text=restore_report(await kept.restore(root, int(number), file), int(number)))
