"""A mail is read in a process of its own: one that is made to take for ever, or all memory, ends with that process."""

from __future__ import annotations

import msgspec

from hermes_agent.gateway.channel import NotNow
from hermes_agent.gateway.email.reading import Mail, Unreadable, read
from hermes_agent.host.process import WORK_SECONDS, Ended, apart

TOLD = "hermes_agent.gateway.email.apart:told"


async def read_apart(raw: bytes, own: str, server: str = "", *, work: int = WORK_SECONDS) -> Mail:
    """What `reading.read` gives, within `work` seconds of work (the largest mail takes two or three). Raises
    `Unreadable`; `NotNow` where no process can be started."""
    try:
        out = await apart(TOLD, raw, own, server, work=work)
    except OSError as error:
        raise NotNow(f"Mail cannot be read now: {error.strerror}") from error
    except Ended as error:
        raise Unreadable(f"Reading the mail was ended: {error}") from error
    found = msgspec.msgpack.decode(out, type=Mail | str)
    if isinstance(found, str):
        raise Unreadable(found)
    return found


def told(raw: bytes, own: str, server: str) -> bytes:
    """The mail as the other process tells it, or why it is none."""
    try:
        return msgspec.msgpack.encode(read(raw, own, server))
    except Unreadable as error:
        return msgspec.msgpack.encode(str(error))
