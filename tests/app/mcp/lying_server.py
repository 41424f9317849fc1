"""A server that lies: answers too large to read or no JSON, lists without an end, errors with the code of a loss. What
it writes has the id last, as servers of JavaScript write it."""

from __future__ import annotations

import json
import os
import sys

NAMES = ("large", "misleading", "deep", "refuses", "asks", "fine")
LONG = "d" * int(os.environ.get("LONG", "3"))


def answer(id_: object, said: str) -> None:
    sys.stdout.write(f'{{{said},"jsonrpc":"2.0","id":{json.dumps(id_)}}}\n')
    sys.stdout.flush()


def text(said: str, more: str = "") -> str:
    return f'"result":{{{more}"content":[{{"type":"text","text":{json.dumps(said)}}}]}}'


def called(name: str, arguments: dict) -> str:
    match name:
        case "large":
            return text("x" * (17 << 20))
        case "misleading":
            return text("x" * (17 << 20), '"id":7,')
        case "deep":
            return f'"result":{"[" * 10_000}{"]" * 10_000}'
        case "refuses":
            said = f"not today {arguments.get('secret', '')}".strip()
            return f'"error":{json.dumps({"code": -32000, "message": said})}'
        case "asks":
            form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": arguments["fields"]}}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form}))
            sys.stdout.write("\n")
            sys.stdout.flush()
            return text(sys.stdin.readline())
    return text(name)


def listed(cursor: str) -> str:
    number = int(cursor or "0")
    tools = [{"name": name, "description": LONG, "inputSchema": {"type": "object"}} for name in NAMES]
    tools += [{"name": f"more{number}", "inputSchema": {"type": "object", "description": LONG * 6}}]
    return f'"result":{json.dumps({"tools": tools[0 if not cursor else -1 :], "nextCursor": str(number + 1)})}'


def reply(method: str, params: dict) -> str:
    match method:
        case "initialize":
            able = {"tools": {}, "prompts": {}, "resources": {}}
            info = {"name": os.environ.get("TOKEN", "lying"), "version": "1"}
            return f'"result":{json.dumps({"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info})}'
        case "tools/list":
            return listed(params.get("cursor", ""))
        case "tools/call":
            return called(params["name"], params.get("arguments") or {})
        case "prompts/list":
            prompts = [
                {"name": f"p{number}", "description": LONG} for number in range(int(os.environ.get("PROMPTS", 600)))
            ]
            return f'"result":{json.dumps({"prompts": prompts})}'
        case "resources/list":
            resources = [{"uri": f"note://{number}", "name": "n"} for number in range(500)]
            return f'"result":{json.dumps({"resources": resources})}'
    return '"error":{"code":-32601,"message":"Method not found"}'


if __name__ == "__main__":
    if "DIES" in os.environ:
        sys.exit(f"{os.environ['TOKEN']} is no token")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer(message["id"], reply(message["method"], message.get("params") or {}))
