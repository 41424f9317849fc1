"""What a Matrix homeserver's double tells: the sync, rooms and their people, events, earlier messages."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web

from hermes_agent.core.dataclass import dataclass
from tests.doubles.matrix import NAME, OWN, MatrixPlatform, Room, Values
from tests.doubles.serving import given_out


@dataclass(slots=True)
class Reading:
    """The part of the client-server API that tells."""

    at: MatrixPlatform

    async def sync(self, request: web.Request) -> web.Response:
        """What happened since."""
        since = request.query.get("since", "")
        start = int(since.removeprefix("s")) if since else 0
        self.at.reached = max(self.at.reached, start)
        if self.at.odd:
            return web.json_response(self.at.odd.pop(0))
        with suppress(TimeoutError):
            async with asyncio.timeout(int(request.query.get("timeout", "0")) / 1000):
                while len(self.at.stream) <= start and since and not (self.at.to_device or self.at.changed):
                    self.at.more.clear()
                    await self.at.more.wait()
        rooms: dict[str, dict[str, Values]] = {"join": {}, "invite": {}, "leave": {}}
        for section, room, event in self.at.stream[start:]:
            if section == "invite":
                rooms["invite"][room] = {"invite_state": {"events": [event]}}
                continue
            events = rooms[section].setdefault(room, _room(start))["timeline"]["events"]
            events.append(event)
        for found in rooms["join"].values():
            timeline = found["timeline"]
            timeline["limited"] = len(timeline["events"]) > self.at.limit
            timeline["prev_batch"] = f"p{timeline['events'][-self.at.limit :][0]['event_id']}"
            timeline["events"] = timeline["events"][-self.at.limit :]
        changed, self.at.changed = self.at.changed, []
        return web.json_response(
            {
                "next_batch": f"s{len(self.at.stream)}",
                "rooms": rooms,
                "to_device": {"events": [self.at.to_device.pop(0) for _ in self.at.to_device[:]]},
                "device_lists": {"changed": changed, "left": []},
                "device_one_time_keys_count": {},
            }
        )

    async def whoami(self, _: web.Request) -> web.Response:
        return web.json_response({"user_id": OWN, "device_id": "DEVICE", "is_guest": False})

    async def profile(self, _: web.Request) -> web.Response:
        return web.json_response({"displayname": NAME})

    async def members(self, request: web.Request) -> web.Response:
        people = self.at.rooms[request.match_info["room"]].people
        return web.json_response({"joined": {user: {"display_name": name} for user, name in people.items()}})

    async def state(self, request: web.Request) -> web.Response:
        room, kind = self.at.rooms.get(request.match_info["room"], Room()), request.match_info["kind"]
        if kind == "m.room.encryption" and room.encrypted:
            return web.json_response({"algorithm": "m.megolm.v1.aes-sha2"})
        found = room.state.get(kind)
        return refused(404, "M_NOT_FOUND") if found is None else web.json_response(found)

    async def event(self, request: web.Request) -> web.Response:
        room = self.at.rooms.get(request.match_info["room"], Room())
        found = room.events.get(request.match_info["event"])
        return web.json_response(found) if found else refused(404, "M_NOT_FOUND")

    async def relations(self, request: web.Request) -> web.Response:
        return web.json_response({"chunk": self.at.signs(request.match_info["room"], request.match_info["event"])})

    async def messages(self, request: web.Request) -> web.Response:
        """Backwards from a place, a few at a time, to where the last sync had come."""
        room, limit = request.match_info["room"], min(self.at.page, int(request.query["limit"]))
        known = [(position, event) for position, (_, where, event) in enumerate(self.at.stream) if where == room]
        first = request.query["from"].removeprefix("p")
        least = int(request.query["to"].removeprefix("s"))
        upto = next(position for position, event in known if event["event_id"] == first)
        chunk = [event for position, event in known if least <= position < upto][::-1][:limit]
        more = {"end": f"p{chunk[-1]['event_id']}"} if chunk else {}
        return web.json_response({"chunk": chunk, **more})

    async def download(self, request: web.Request) -> web.StreamResponse:
        content = self.at.files.get(request.match_info["id"])
        return refused(404, "M_NOT_FOUND") if content is None else await given_out(request, content, self.at.slow)


def refused(status: int, code: str, words: str = "") -> web.Response:
    """An error as Matrix says it."""
    return web.json_response({"errcode": code, "error": words or code}, status=status)


def _room(start: int) -> Values:
    return {
        "timeline": {"events": [], "limited": False, "prev_batch": f"p{start}"},
        "state": {"events": []},
        "ephemeral": {"events": []},
        "account_data": {"events": []},
        "summary": {},
        "unread_notifications": {},
    }
