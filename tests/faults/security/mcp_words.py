"""An MCP server that says what the file `payloads.json` of its folder holds: in each way in which a server speaks."""

import json
import pathlib
import sys

SAID = json.loads(pathlib.Path("payloads.json").read_text())


def say(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tools() -> list[dict]:
    named = [{"name": text[:150], "description": "Says nothing."} for text in SAID]
    described = [{"name": f"way_{number}", "description": text} for number, text in enumerate(SAID)]
    own = [
        {"name": name, "description": "Says it."}
        for name in ("says", "fails", "breaks", "asks", "links", "shapes", "dies", "thinks")
    ]
    return [{**each, "inputSchema": {"type": "object"}} for each in (*named, *described, *own)]


def called(id_: object, name: str, text: str) -> dict:  # noqa: PLR0911 - one for each tool
    match name:
        case "fails":
            return {"result": {"isError": True, "content": [{"type": "text", "text": text}]}}
        case "shapes":
            return {"result": {"content": [], "structuredContent": {"said": text, text[:50]: 1}}}
        case "thinks":
            params = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100}
            say({"id": f"q{id_}", "method": "sampling/createMessage", "params": params})
            return {"result": {"content": [{"type": "text", "text": sys.stdin.readline()}]}}
        case "dies":
            sys.exit(text)
        case "breaks":
            return {"error": {"code": -32000, "message": text}}
        case "links":
            link = {"type": "resource_link", "uri": "note://1", "name": text}
            return {"result": {"content": [link]}}
        case "asks":
            params = {"message": text, "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
            say({"id": f"q{id_}", "method": "elicitation/create", "params": params})
            return {"result": {"content": [{"type": "text", "text": sys.stdin.readline()}]}}
    return {"result": {"content": [{"type": "text", "text": text}]}}


def answer(id_: object, method: str, params: dict) -> dict:  # noqa: PLR0911 - one for each method
    text = SAID[int((params.get("arguments") or {}).get("number", 0))]
    match method:
        case "initialize":
            able = {"tools": {}, "resources": {}, "prompts": {}}
            info = {"name": SAID[0], "version": "1"}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": able, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": tools()}}
        case "tools/call":
            return called(id_, params["name"], text)
        case "prompts/list":
            return {
                "result": {
                    "prompts": [
                        {"name": "say", "description": each, "arguments": [{"name": "number"}]} for each in SAID
                    ]
                }
            }
        case "prompts/get":
            block = {"type": "text", "text": text}
            return {"result": {"messages": [{"role": "user", "content": block}]}}
        case "resources/list":
            return {"result": {"resources": [{"uri": f"note://{n}", "name": each} for n, each in enumerate(SAID)]}}
        case "resources/templates/list":
            return {"result": {"resourceTemplates": [{"uriTemplate": f"{text}{{a}}", "name": text} for text in SAID]}}
        case "resources/read":
            text = SAID[int(params["uri"].removeprefix("note://"))]
            return {"result": {"contents": [{"uri": params["uri"], "text": text}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


if __name__ == "__main__":
    if "away" in sys.argv:
        sys.exit(SAID[0])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            reply = answer(message["id"], message["method"], message.get("params") or {})
            say({"id": message["id"], **reply})
