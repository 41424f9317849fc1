"""A mail is read in a process of its own: one that is made to take for ever, or all memory, ends with that process."""

from __future__ import annotations

import msgspec

from hermes_agent.gateway.channel import NotNow
from hermes_agent.gateway.email.reading import Mail, Unreadable, read
from hermes_agent.host.process import WORK_SECONDS, Ended, apart

TOLD = "hermes_agent.gateway.email.apart:parsed"


async def read_apart(raw: bytes, own: str, server: str = "", *, work: int = WORK_SECONDS, by: str = TOLD) -> Mail:
    """What `reading.read` gives, within `work` seconds of work (the largest mail takes two or three). Raises
    `Unreadable`; `NotNow` where no mail can be read: no process can be started, or the program is just being changed
    on the disk. `by` names what reads."""
    try:
        out = await apart(by, raw, own, server, work=work)
    except OSError as error:
        raise NotNow(f"Mail cannot be read now: {error.strerror}") from error
    except Ended as error:
        await _still_reads(by)
        raise Unreadable(f"Reading the mail was ended: {error}") from error
    found = msgspec.msgpack.decode(out, type=Mail | str)
    if isinstance(found, str):
        raise Unreadable(found)
    return found


async def _still_reads(by: str) -> None:
    """Raise `NotNow` where even an empty mail cannot be read: then it is not the mail that is wrong."""
    try:
        await apart(by, b"", "", "")
    except (Ended, OSError) as error:
        raise NotNow(f"No mail can be read now: {error}") from error


def parsed(raw: bytes, own: str, server: str) -> bytes:
    """The mail as the other process tells it, or why it is none."""
    try:
        return msgspec.msgpack.encode(read(raw, own, server))
    except Unreadable as error:
        return msgspec.msgpack.encode(str(error))
