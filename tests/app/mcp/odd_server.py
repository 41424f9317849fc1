"""A server of the older protocol whose answers are legal and awkward; `MODE` says how its lists are."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import signal
import sys
import threading

MODE = os.environ.get("MODE", "")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n picture").decode()
ANSWERS = {
    "broken_picture": [{"type": "image", "data": "no base64!", "mimeType": "image/png"}],
    "no_picture": [{"type": "image", "data": base64.b64encode(b"<svg>").decode(), "mimeType": "image/png"}],
    "misnamed": [{"type": "image", "data": PNG, "mimeType": "text/html; evil"}],
    "pictures": [{"type": "image", "data": PNG, "mimeType": "image/png"}] * 50,
    "blocks": [{"type": "text", "text": "y" * 1000}] * 2000,
    "zip": [
        {"type": "resource", "resource": {"uri": "x://a/b.zip", "mimeType": "application/zip", "blob": "UEsDBA=="}}
    ],
    "note": [{"type": "resource", "resource": {"uri": "x://n", "mimeType": "text/plain", "blob": "aGVsbG8="}}],
    "sound": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/mpeg"}],
}
lists = 0


def say(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method: str, params: dict) -> dict:
    global lists  # noqa: PLW0603 - a program of one page
    match method:
        case "initialize":
            able = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
            info = {"name": "odd", "version": "1"}
            return {"result": {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}}
        case "tools/list":
            lists += 1
            pathlib.Path("lists").write_text(str(lists))
            if MODE == "spam":
                say({"method": "notifications/tools/list_changed"})
            return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ANSWERS]}}
        case "prompts/list":
            return {"result": {"prompts": [{"name": 5}, {"name": "fine"}]}}
        case "resources/list":
            return {"result": {"resources": [{"uri": 7}, {"uri": "x://one", "name": "one"}]}}
        case "tools/call":
            return {"result": {"content": ANSWERS[params["name"]]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


if __name__ == "__main__":
    if MODE == "deaf":
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = answer(message["method"], message.get("params") or {})
            say({"id": message["id"], **reply})
    if MODE == "deaf":  # Nor does it mind that its input ended.
        threading.Event().wait()
