"""`/history`: what was said in a session, as the model is shown it or as the log has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.events import Compacted, Entry, MessageTaken, Replied, ToolEnded, Undone
from hermes_agent.core.messages import Message, Role, ToolResult

SHOWN, SHOWN_WHOLE = 400, 4_000
"""Characters of one message."""

WHO = {Role.USER: "you", Role.ASSISTANT: "agent", Role.TOOL: "tool"}


async def history(desk: Desk, rest: str) -> Done:
    """What the model is shown now; with `--full` everything that was said, also what was shortened or taken back."""
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
                yield f"#{entry.number} (shortened for the model: {before:,} to {after:,} tokens)"
            case Undone(to=to):
                yield f"#{entry.number} (taken back: what follows #{to})"
            case _:
                pass


def _line(message: Message, longest: int) -> str:
    calls = ", ".join(call.name for call in message.tool_calls)
    text = " ".join(" ".join(_texts(message)).split())
    words = f"{text[:longest]} [{len(text) - longest:,} characters more]" if len(text) > longest else text
    return f"{WHO[message.role]}: {words}{f' (calls {calls})' if calls else ''}" if words or calls else ""


def _texts(message: Message) -> Iterable[str]:
    results = [part.text for part in message.parts if isinstance(part, ToolResult)]
    return results or [message.text]


HISTORY = Command(
    name="history",
    summary="Show what was said; --full also what was shortened.",
    arguments="[--full]",
    act=history,
    while_running=True,
)
