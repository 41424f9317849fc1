"""`hermes acp --check`: a whole conversation with an editor that is none, and a scripted model."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from acp.connection import Connection
from acp.exceptions import RequestError

from hermes_agent.acp.serve import serve
from hermes_agent.acp.transport import StdioTransport
from hermes_agent.app.models import route_of
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.host.config import Loaded
from hermes_agent.host.loops import ends_within
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets
from hermes_agent.host.tasks import spawn

SCRIPTED = "demo/scripted"
SECONDS = 30.0


async def check(loaded: Loaded[Any], secrets: Secrets) -> str:
    """What the agent can do in an editor, and whether a turn works and a model is there. Raises `HermesError`."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(root=Path(folder, "home"), base=Path(folder, "home"))
        try:
            async with asyncio.timeout(SECONDS):
                told = await _turn(home, folder)
        except (RequestError, ConnectionError, TimeoutError) as error:
            raise HermesError(f"The scripted turn failed: {error}. logs/hermes.log may say why.") from error
    try:
        return f"{told}\nModel: {route_of(loaded, secrets).name}"
    except NoModel as error:
        return f"{told}\nModel: none. {error}"


async def _turn(home: Home, folder: str) -> str:
    (to_agent, from_editor), (to_editor, from_agent) = os.pipe(), os.pipe()
    serving = spawn(serve(home, (to_agent, from_agent), SCRIPTED), name="the agent that is checked")
    transport = StdioTransport(to_editor, from_editor)
    pieces: list[str] = []

    async def heard(method: str, params: Any, _: bool) -> None:  # noqa: ANN401 - the SDK's shape
        update = params.get("update", {}) if method == "session/update" else {}
        if update.get("sessionUpdate") == "agent_message_chunk":
            pieces.append(update["content"]["text"])

    editor = Connection(heard, transport)
    said = await editor.send_request("initialize", {"protocolVersion": 1})
    begun = await editor.send_request("session/new", {"cwd": folder, "mcpServers": []})
    prompt = [{"type": "text", "text": "Hi."}]
    answer = await editor.send_request("session/prompt", {"sessionId": begun["sessionId"], "prompt": prompt})
    await editor.close()
    os.close(from_editor)
    await serving
    ends_within(0)
    for handle in (to_agent, to_editor, from_agent):
        os.close(handle)
    can = said["agentCapabilities"]
    names = [name for name, value in {**can["promptCapabilities"], **can["mcpCapabilities"]}.items() if value]
    return "\n".join(
        (
            f"Protocol: version {said['protocolVersion']}",
            f"Sessions: new, load, {', '.join(can['sessionCapabilities'])}",
            f"Takes: {', '.join(names)}",
            f"Ways in: {', '.join(each['id'] for each in said['authMethods'])}",
            f"Options: {', '.join(each['id'] for each in begun['configOptions'])}",
            f"A scripted turn ended with {answer['stopReason']}: {' '.join(''.join(pieces).split())[:60]}",
        )
    )
