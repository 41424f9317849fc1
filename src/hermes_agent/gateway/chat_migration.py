"""Chats that their platform gave another id: everything here keeps the first one."""

from __future__ import annotations

import asyncio
import json

from hermes_agent.gateway.channel import Kept

MOVED = "moved"


class ChatMigration:
    """The chats that moved, kept at `place`. Sessions, settings and rights know a chat by its first id; the platform is
    asked under the one that it has now."""

    def __init__(self, kept: Kept, place: str) -> None:
        self._kept = kept
        self._place = place
        self._now: dict[str, str] = {}
        self._first: dict[str, str] = {}
        self._read = False
        self._alone = asyncio.Lock()

    async def now(self, first: str) -> str:
        """The id that a chat has now."""
        await self._load()
        return self._now.get(first, first)

    async def first(self, now: str) -> str:
        """The id that a chat had first."""
        await self._load()
        return self._first.get(now, now)

    async def moved(self, before: str, after: str) -> None:
        """A chat got another id; durable when this returns."""
        first = await self.first(before)
        async with self._alone:
            if self._now.get(first) == after:
                return
            await self._kept.set(self._place, MOVED, json.dumps({**self._now, first: after}))
            self._now[first] = after
            self._first[after] = first

    async def _load(self) -> None:
        if self._read:
            return
        async with self._alone:
            try:
                found = json.loads((await self._kept.of(self._place)).get(MOVED, "{}"))
                self._now = {str(first): str(now) for first, now in found.items()}
            except (ValueError, AttributeError):
                self._now = {}
            self._first = {now: first for first, now in self._now.items()}
            self._read = True
