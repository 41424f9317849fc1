"""Files of this home that logs name, large input and long results: they go with the last session that names them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from hermes_agent.host.paths import Home
from hermes_agent.store.database import Store

FOLDERS = ("cache/input/", "cache/results/")
FILE = re.compile(r"cache/(?:input|results)/[0-9a-f]{20}(?:\.\w{1,10})?")


@asynccontextmanager
async def without_files(store: Store, home: Home, session: str = "") -> AsyncIterator[None]:
    """Sessions are deleted in the block (this one, or any): the files that no log names afterwards are deleted too."""
    before = _named(await store.history.holding(FOLDERS, session))
    yield
    if before and (gone := before - _named(await store.history.holding(FOLDERS))):
        await asyncio.to_thread(_remove, home, gone)


def _named(bodies: Sequence[str]) -> set[str]:
    return {name for body in bodies for name in FILE.findall(body)}


def _remove(home: Home, names: set[str]) -> None:
    for name in names:
        with suppress(OSError):  # It was of another home, or a person took it away.
            (home.root / name).unlink()
