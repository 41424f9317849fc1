"""Chat migration: maps a chat's current platform id to its first id, which sessions and settings use."""

from __future__ import annotations

import asyncio
import json

from hermes_agent.gateway.channel import Kept

MOVED = "moved"


class ChatMigration:
    """Persistent id mapping of migrated chats, kept at `place`. Sessions, settings and access rules use a chat's
    first id; platform calls use the current one."""

    def __init__(self, kept: Kept, place: str) -> None:
        self._kept = kept
        self._place = place
        self._now: dict[str, str] = {}
        self._first: dict[str, str] = {}
        self._read = False
        self._alone = asyncio.Lock()

    async def now(self, first: str) -> str:
        """The current id of a chat."""
        await self._load()
        return self._now.get(first, first)

    async def first(self, now: str) -> str:
        """The first id of a chat."""
        await self._load()
        return self._first.get(now, now)

    async def moved(self, before: str, after: str) -> None:
        """Record a migration; durable when this returns."""
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
