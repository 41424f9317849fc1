"""A server of the older protocol for the tests, of the standard library alone; its tools misbehave when asked to."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import sys
import threading

TOOLS: dict[str, dict] = {
    name: {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}}
    for name in (
        *("add", "pid", "see", "variable", "slow", "who", "page", "roots", "fail", "die", "more", "many", "huge"),
        *("noise", "wrong_id", "hang", "invalid", "structured", "burst", "rename", "think", "touch"),
    )
}
TOOLS["add"]["annotations"] = {"readOnlyHint": True}
TOOLS["structured"]["outputSchema"] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}},
    "required": ["name"],
}
numbers = itertools.count(1)


def say(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def hear() -> dict:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method: str, params: dict) -> dict:
    id_ = f"s{next(numbers)}"
    say({"id": id_, "method": method, "params": params})
    while (answer := hear()).get("id") != id_:
        pass
    return answer.get("result") or answer["error"]


def slow(arguments: dict, meta: dict) -> str:
    for number in range(10):
        if "progressToken" in meta:
            progress = {"progressToken": meta["progressToken"], "progress": number, "total": 10, "message": "waiting"}
            say({"method": "notifications/progress", "params": progress})
        threading.Event().wait(arguments["seconds"] / 10)
    return "done"


def content(name: str, arguments: dict, meta: dict) -> str:  # noqa: C901, PLR0911, PLR0912 - a case for each tool
    match name:
        case "add":
            return str(arguments["a"] + arguments["b"])
        case "pid":
            return str(os.getpid())
        case "see":
            with pathlib.Path(arguments["path"]).open() as file:
                return file.read()
        case "variable":
            return os.environ.get(arguments["name"], "(none)")
        case "slow":
            return slow(arguments, meta)
        case "who":
            return json.dumps(ask("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM}))
        case "page":
            page = {"mode": "url", "message": "Pay", "url": arguments["url"], "elicitationId": "e1"}
            return json.dumps(ask("elicitation/create", page))
        case "think":
            said = {"role": "user", "content": {"type": "text", "text": arguments.get("text", "What is 2 + 2?")}}
            found = [
                ask("sampling/createMessage", {"messages": [said], "maxTokens": 100})
                for _ in range(arguments.get("times", 1))
            ]
            return json.dumps(found[-1])
        case "roots":
            return json.dumps(ask("roots/list", {}))
        case "fail":
            raise ValueError("it is broken")
        case "die":
            os._exit(3)
        case "hang":
            threading.Event().wait()
        case "more" | "rename":
            if name == "rename":
                TOOLS.clear()
            TOOLS["later"] = {"name": "later", "description": "Came later.", "inputSchema": {"type": "object"}}
            say({"method": "notifications/tools/list_changed"})
        case "many":
            for _ in range(1000):
                say({"method": "notifications/tools/list_changed"})
        case "touch":
            say({"method": "notifications/resources/updated", "params": {"uri": "note://one"}})
        case "huge":
            return "x" * arguments["size"]
        case "noise":
            for number in range(20):
                print(f"noise {number}", flush=True)
        case "burst":
            for number in range(10_000):
                progress = {"progressToken": meta["progressToken"], "progress": number, "message": "x" * 1000}
                say({"method": "notifications/progress", "params": progress})
    return name


def called(id_: object, params: dict) -> None:
    name = params["name"]
    if name == "wrong_id":
        say({"id": 99999, "result": {"content": [{"type": "text", "text": "for nobody"}]}})
    if name == "invalid":
        return say({"id": id_, "result": {"content": "no list"}})
    try:
        result = {
            "content": [{"type": "text", "text": content(name, params.get("arguments", {}), params.get("_meta", {}))}]
        }
    except (ValueError, OSError) as error:
        result = {"content": [{"type": "text", "text": str(error)}], "isError": True}
    if name == "structured":
        result["structuredContent"] = {"n": "seven"}
    say({"id": id_, "result": result})
    return None


def answer(message: dict) -> None:
    id_, params = message["id"], message.get("params") or {}
    match message["method"]:
        case "initialize":
            able = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {}}
            version = os.environ.get("SPEAKS", "2025-11-25")
            info = {"name": "plain", "version": "1"}
            say({"id": id_, "result": {"protocolVersion": version, "capabilities": able, "serverInfo": info}})
        case "tools/list":
            hostile = json.loads(pathlib.Path(os.environ["HOSTILE"]).read_text()) if "HOSTILE" in os.environ else []
            say({"id": id_, "result": {"tools": [*hostile, *TOOLS.values()]}})
        case "resources/list":
            say({"id": id_, "result": {"resources": [{"uri": "note://one", "name": "note"}]}})
        case "resources/subscribe":
            say({"id": id_, "result": {}})
        case "resources/templates/list":
            say({"id": id_, "result": {"resourceTemplates": []}})
        case "resources/read":
            say({"id": id_, "result": {"contents": [{"uri": params["uri"], "text": "the note"}]}})
        case "prompts/list":
            arguments = [{"name": "name", "required": True}]
            say({"id": id_, "result": {"prompts": [{"name": "greet", "arguments": arguments}]}})
        case "prompts/get":
            text = {"type": "text", "text": f"Say hello to {params['arguments']['name']}."}
            say({"id": id_, "result": {"messages": [{"role": "user", "content": text}]}})
        case "tools/call":
            called(id_, params)
        case _:
            say({"id": id_, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    while True:
        if "id" in (message := hear()) and "method" in message:
            answer(message)
