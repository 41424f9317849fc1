"""On a real homeserver (Synapse): while one room brings a file slowly, stops and choices of others act at once."""

from __future__ import annotations

import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from aiohttp import ClientSession, web

from hermes_agent.gateway.channels.matrix import CHANNEL
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.host.paths import Home
from hermes_agent.store.outbox import Outbox
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import settle_home
from tests.contracts.channels import needs
from tests.doubles.serving import given_out, served
from tests.gateway.harness import eventually
from tests.gateway.matrix.synapse import Person, Synapse
from tests.gateway.matrix.test_real_server import Play, ann, play, pytestmark
from tests.gateway.test_control_lane import AT_ONCE, MB, TRIES, answer

__all__ = ["ann", "play", "pytestmark"]
HOP = frozenset({"host", "content-length", "transfer-encoding", "content-encoding", "connection"})


@asynccontextmanager
async def slow_way(server: Synapse, seconds: float) -> AsyncIterator[str]:
    """A way to the homeserver on which each file takes so long."""
    async with ClientSession() as client:

        async def forward(request: web.Request) -> web.StreamResponse:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
            url = f"{server.url}{request.rel_url}"
            async with client.request(request.method, url, headers=headers, data=await request.read()) as got:
                body = await got.read()
                if "/media/download/" in request.path:
                    return await given_out(request, body, seconds)
                kept = {name: value for name, value in got.headers.items() if name.lower() not in HOP}
                return web.Response(status=got.status, body=body, headers=kept)

        application = web.Application(client_max_size=100 * MB)
        application.router.add_route("*", "/{path:.*}", forward)
        async with served(application) as url:
            yield url


async def test_a_stop_and_a_choice_act_at_once_while_another_room_brings_a_file(
    server: Synapse, play: Play, ann: Person, tmp_path: Path
):
    home = Home(root=tmp_path / "home", base=tmp_path / "home")
    async with slow_way(server, 120.0) as url, serving(openai_model(answer, keys=())) as model:
        given = needs(tmp_path, {"homeserver": url}, play.needs.secret(""))
        settle_home(home.root, model.url)
        with home.config_file.open("a") as file:
            rules = f"{{enabled: true, owners: ['{ann.id}']}}"
            file.write(f"gateway:\n  largest_file_mb: 60\n  channels:\n    matrix: {rules}\n")
        kind = replace(CHANNEL, make=lambda _: CHANNEL.make(given))
        async with open_gateway(home, {"matrix": kind}) as gateway:
            large, ask, *stops = [await play.meeting(ann) for _ in range(2 + TRIES)]
            for room in stops:
                await ann.say(room, "hang")
            await ann.say(ask, "ask")
            await eventually(lambda: len(model.asked) == 1 + TRIES, 60)
            content = io.BytesIO(bytes(40 * MB))
            uploaded, _ = await ann.client.upload(content, "video/mp4", "film.mp4", filesize=40 * MB)
            await ann.say(large, "film.mp4", msgtype="m.file", url=uploaded.content_uri)
            await eventually(lambda: bool(gateway.ingress.downloads._patience), 60)

            took = [await stopped(gateway.runtime.store.outbox, ann, room) for room in stops]
            assert min(took) < AT_ONCE, took
            (question, *_) = await ann.of(ask, play.own)
            await ann.react(ask, question["id"], "1\ufe0f\u20e3")
            began = time.perf_counter()
            await eventually(lambda: len(model.asked) == 2 + TRIES)
            assert time.perf_counter() - began < 5 * AT_ONCE
            await ann.say(large, "/stop")
            await eventually(lambda: not gateway.ingress.downloads._patience)
        await given.http.close()


async def stopped(outbox: Outbox, ann: Person, room: str) -> float:
    """Seconds from `/stop`, once the homeserver has it, to its answer in the outbox."""
    source = await ann.say(room, "/stop")
    began = time.perf_counter()

    async def done() -> bool:
        return await outbox.find(f"answer:matrix:{source}") is not None

    await eventually(done)
    return time.perf_counter() - began
