"""A Matrix homeserver on loopback with one account that logs in, written from the public client-server API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.doubles.matrix import MatrixPlatform
from tests.doubles.matrix_keys import Keys
from tests.doubles.matrix_reading import Reading, refused
from tests.doubles.matrix_writing import Writing
from tests.doubles.serving import served


@asynccontextmanager
async def matrix_platform() -> AsyncIterator[MatrixPlatform]:
    """The homeserver, served until the block ends."""
    platform = MatrixPlatform()
    reading, writing, keys = Reading(platform), Writing(platform), Keys(platform)
    application = web.Application(client_max_size=64_000_000, middlewares=[_guard(platform)])
    base = "/_matrix/client/v3"
    application.add_routes(
        [
            web.get(f"{base}/account/whoami", reading.whoami),
            web.get(f"{base}/profile/{{user}}/displayname", reading.profile),
            web.get(f"{base}/sync", reading.sync),
            web.post(f"{base}/join/{{room}}", writing.join),
            web.post(f"{base}/rooms/{{room}}/leave", writing.leave),
            web.get(f"{base}/rooms/{{room}}/joined_members", reading.members),
            web.get(f"{base}/rooms/{{room}}/state/{{kind}}/", reading.state),
            web.get(f"{base}/rooms/{{room}}/event/{{event}}", reading.event),
            web.get(f"{base}/rooms/{{room}}/messages", reading.messages),
            web.get("/_matrix/client/v1/rooms/{room}/relations/{event}/m.annotation", reading.relations),
            web.put(f"{base}/rooms/{{room}}/send/{{kind}}/{{mark}}", writing.send),
            web.put(f"{base}/rooms/{{room}}/redact/{{event}}/{{mark}}", writing.redact),
            web.put(f"{base}/rooms/{{room}}/typing/{{user}}", writing.typing),
            web.post(f"{base}/keys/upload", keys.upload),
            web.post(f"{base}/keys/query", keys.query),
            web.post(f"{base}/keys/claim", keys.claim),
            web.post(f"{base}/keys/device_signing/upload", keys.account),
            web.post(f"{base}/keys/signatures/upload", keys.signatures),
            web.put(f"{base}/sendToDevice/{{kind}}/{{mark}}", keys.direct),
            web.post("/_matrix/media/v3/upload", writing.upload),
            web.get("/_matrix/client/v1/media/download/{server}/{id}", reading.download),
            web.get("/_matrix/media/v3/download/{server}/{id}", reading.download),
        ]
    )
    async with served(application) as url:
        platform.url = url
        yield platform


def _guard(platform: MatrixPlatform) -> Any:  # noqa: ANN401  aiohttp's
    @web.middleware
    async def guarded(request: web.Request, handler: Any) -> web.StreamResponse:  # noqa: ANN401  aiohttp's
        if platform.refusal is not None:
            return refused(*platform.refusal)
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return refused(401, "M_MISSING_TOKEN")
        answer: web.StreamResponse = await handler(request)
        return answer

    return guarded
