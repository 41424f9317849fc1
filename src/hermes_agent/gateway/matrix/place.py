"""How far the agent has come with one account, and what waits there, as a text of the store."""

from __future__ import annotations

import json
from dataclasses import asdict, field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import Kept
from hermes_agent.gateway.matrix.shapes import number, table, text

PLACE = "place"
INVITATIONS = 200
"""So many invitations of strangers are looked at again, the newest."""
UNREAD = 100
"""So many messages wait for their keys, the newest."""


@dataclass(slots=True, kw_only=True)
class Place:
    """What one account keeps over restarts.

    `since` is how far it has come (empty: it has not begun). `invitations` are rooms that it has not entered, with who
    asked and whether it is a chat of two; `strangers` rooms of two with somebody who is not let in, since when;
    `unread` messages whose keys have not come, by id, with their room and since when; `told` rooms that were told that
    they cannot be read.
    """

    since: str = ""
    invitations: dict[str, tuple[str, bool]] = field(default_factory=dict)
    strangers: dict[str, tuple[str, float]] = field(default_factory=dict)
    unread: dict[str, tuple[str, float]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def invite(self, room: str, user: str, *, direct: bool) -> None:
        """Somebody asks the agent into a room. Anybody may, as often as they like."""
        self.invitations[room] = (user, direct)
        while len(self.invitations) > INVITATIONS:
            self.invitations.pop(next(iter(self.invitations)))

    def wait(self, event: str, room: str, now: float) -> None:
        """A message waits for its key."""
        self.unread[event] = (room, now)
        while len(self.unread) > UNREAD:
            self.unread.pop(next(iter(self.unread)))

    def forget(self, room: str) -> None:
        """The agent is not in a room any more."""
        self.invitations.pop(room, None)
        self.strangers.pop(room, None)

    def written(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, written: str) -> Place:
        """What `written` gave; a place that has not begun where there is nothing to read."""
        try:
            found = table(json.loads(written))
        except ValueError:
            return cls()
        told = found.get("told")
        return cls(
            since=text(found.get("since")),
            invitations={room: (str(user), bool(direct)) for room, (user, direct) in _pairs(found, "invitations")},
            strangers={room: (str(user), number(at)) for room, (user, at) in _pairs(found, "strangers")},
            unread={event: (str(room), number(at)) for event, (room, at) in _pairs(found, "unread")},
            told=[text(room) for room in told] if isinstance(told, list) else [],
        )


class Places:
    """Where the place of one account is kept, by `name`; one that is the same as before is not written again."""

    def __init__(self, kept: Kept, name: str) -> None:
        self._kept = kept
        self._name = name
        self._before = ""

    async def begin(self) -> Place:
        """What was kept last."""
        self._before = (await self._kept.of(self._name)).get(PLACE, "")
        return Place.read(self._before)

    async def keep(self, place: Place) -> None:
        if (written := place.written()) != self._before:
            await self._kept.set(self._name, PLACE, written)
            self._before = written


def _pairs(found: object, name: str) -> list[tuple[str, tuple[object, object]]]:
    """Pairs by key; one text alone, as earlier versions wrote it, has nothing behind it."""
    kept = table(table(found).get(name))
    return [
        (key, (each[0], each[1]) if isinstance(each, list) and len(each) == 2 else (each, False))
        for key, each in kept.items()
        if isinstance(each, str | list)
    ]
