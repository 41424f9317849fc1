"""Encrypted rooms: what a channel asks for, and what holds where the agent cannot encrypt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from hermes_agent.gateway.channel import NeverHere
from hermes_agent.gateway.matrix.shapes import Event

SHUT = (
    "This room is encrypted, and I cannot read what is written here: use a room without encryption, or let my owner "
    "install `hermes-runtime[matrix-e2ee]` and set `gateway.channels.matrix.options.encryption` to `yes`."
)


class Crypto(Protocol):
    """Reads and writes encrypted events.

    - `excuse` is what a room is told, once, whose messages cannot be read, `patience` how many seconds a message's key
      may come after it;
    - `begin` is called before the first sync, `synced` with each answer of a sync before its rooms are looked at;
    - `verify` is given a message in a room of somebody who verifies the device, returns at once, and answers by `say`
      later, with type and content;
    - `read` gives the event that an encrypted one holds, None where it cannot be read;
    - `write` gives type and content under which a content goes out in an encrypted room, `lock` the bytes under which a
      file does, with what its receivers need to know (`file` of the content), `unlock` the bytes of such a file;
    - all of them raise only `ChannelError`.
    """

    excuse: str
    patience: float

    async def begin(self, user: str, device: str) -> None: ...

    async def synced(self, found: Event) -> None: ...

    def verify(self, event: Event, say: Callable[[str, Event], Awaitable[None]]) -> None: ...

    async def read(self, room: str, event: Event) -> Event | None: ...

    async def write(self, room: str, kind: str, content: Event) -> tuple[str, Event]: ...

    def lock(self, content: bytes) -> tuple[bytes, Event]: ...

    def unlock(self, content: bytes, keys: Event) -> bytes: ...

    async def close(self) -> None: ...


class Shut:
    """A `Crypto` without any: encrypted rooms stay shut, and nothing goes into them in the clear."""

    excuse = SHUT
    patience = 0.0

    async def begin(self, user: str, device: str) -> None:
        """There is nothing to prepare."""

    async def synced(self, found: Event) -> None:
        """There is nothing to learn."""

    def verify(self, event: Event, say: Callable[[str, Event], Awaitable[None]]) -> None:
        """There is nothing to verify."""

    async def read(self, room: str, event: Event) -> Event | None:  # noqa: ARG002  the Protocol's
        return None

    async def write(self, room: str, kind: str, content: Event) -> tuple[str, Event]:  # noqa: ARG002  the Protocol's
        raise NeverHere("The room is encrypted, and options.encryption is not `yes`.")

    def lock(self, content: bytes) -> tuple[bytes, Event]:  # noqa: ARG002  the Protocol's
        raise NeverHere("The room is encrypted, and options.encryption is not `yes`.")

    def unlock(self, content: bytes, keys: Event) -> bytes:  # noqa: ARG002  the Protocol's
        raise NeverHere("The file is encrypted, and options.encryption is not `yes`.")

    async def close(self) -> None:
        """There is nothing to give back."""
