"""Our client as the official conformance suite drives it: `conformance_client.py ADDRESS`, with
`MCP_CONFORMANCE_SCENARIO` and `MCP_CONFORMANCE_CONTEXT`. It lists what the server has, and calls all its tools."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2

from hermes_agent.core.errors import HermesError
from hermes_agent.core.forms import Form
from hermes_agent.core.tool import Question
from hermes_agent.tools.mcp.oauth import Person
from hermes_agent.tools.mcp.settings import McpServerSettings
from tests.app.mcp.calling import Calling, calling
from tests.tools.bench import Context

SAMPLES = {"integer": 5, "number": 5, "string": "text", "boolean": True, "array": [], "object": {}}
DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Agreeing(Context):
    """A call's context whose person accepts every form as it is."""

    async def ask(self, question: Question) -> str:
        form = Form(question.text, question.fields)
        if question.fields:
            form.take("{}")
        return form.written


class Clicking:
    """A person who agrees to everything: opens the address and takes what comes back."""

    async def show(self, address: str) -> None:
        async with httpx2.AsyncClient() as http:
            answer = await http.get(address)
        self.came = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}

    async def answer(self) -> tuple[str, str | None, str | None]:
        return self.came["code"], self.came.get("state"), self.came.get("iss")


def sample(schema: dict) -> dict:
    wanted = schema.get("properties", {})
    return {name: SAMPLES.get(wanted[name].get("type", ""), "text") for name in schema.get("required", wanted)}


async def call_all(call: Calling, context: dict) -> None:
    chosen = {each["name"]: each.get("arguments", {}) for each in context.get("toolCalls", ())}
    for name, tool in call.tools().items():
        own = name.removeprefix("mcp__s__")
        if name == own or (chosen and own not in chosen):
            continue
        arguments = chosen.get(own) or sample(dict(tool.schema.parameters))
        if own == "add_numbers":
            arguments = {"a": 5, "b": 3}
        if own == "json_schema_echo":
            focal = call.tools()["mcp__s__json_schema_2020_12_tool"]
            arguments = {"schema": dict(focal.schema.parameters)}
        try:
            await tool.run(arguments, Agreeing(workspace=str(call.workspace), call=own))
        except HermesError as error:
            print(f"{own}: {error}", file=sys.stderr)


async def main(address: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    signs = os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/")
    settings = McpServerSettings(
        url=address,
        auth="oauth" if signs else "none",
        client_id=context.get("client_id", DOCUMENT),
        client_secret="CLIENT_SECRET" if context.get("client_secret") else "",
    )
    os.environ["CLIENT_SECRET"] = context.get("client_secret", "")
    with tempfile.TemporaryDirectory() as folder:
        async with calling(Path(folder), {"s": settings}, look=False) as call:
            person, servers = Clicking(), call.source.servers
            if signs:
                found = Person(redirect="http://localhost:3000/callback", show=person.show, answer=person.answer)
                call.source.connector.persons["s"] = found
            server = servers.servers["s"]
            await servers.refresh(replace(server, settings=settings), str(call.workspace))
            await call_all(call, context)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
