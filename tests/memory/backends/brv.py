"""A program `brv` that speaks as ByteRover's public pages say: search, status, and the curate protocol."""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from pathlib import Path

TREE, WAITING = Path(".brv/context-tree"), Path(".brv/sessions")


def installed(folder: Path, behaves: str = "") -> dict[str, str]:
    """The environment of a machine that has it; `behaves` makes it an odd one."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    program = place / "brv"
    program.write_text(f"#!{sys.executable}\nimport runpy\nrunpy.run_path({__file__!r}, run_name='__main__')\n")
    program.chmod(0o755)
    return {"PATH": f"{place}:/usr/bin:/bin", "BRV_BEHAVES": behaves}


def main(command: str, flags: dict[str, str], words: list[str], behaves: str) -> None:
    match command, behaves:
        case _, "silent":
            print("Unable to connect to the daemon")
        case _, "refuses":
            say(command, {"status": "error", "error": "No provider connected."}, success=False)
        case "status", _:
            say(command, {"projectInitialized": True})
        case "search", _:
            search(" ".join(words), int(flags["--limit"]))
        case "curate", "writes itself":
            say("curate", {"event": "response", "content": "Thinking ..."})
            keep("own/topic", " ".join(words))
            say("curate", {"status": "completed"})
        case "curate", _ if "--session" not in flags:
            name = str(uuid.uuid4())
            WAITING.mkdir(parents=True, exist_ok=True)
            (WAITING / name).write_text(" ".join(words))
            say("curate", {"ok": True, "status": "needs-llm-step", "sessionId": name, "step": "generate-html"})
        case _:
            go_on(flags, behaves)


def go_on(flags: dict[str, str], behaves: str) -> None:
    assert (WAITING / flags["--session"]).exists()
    envelope = json.loads(flags["--response"])
    found = re.fullmatch(r'<bv-topic path="([a-z0-9_/]+)" title="[^"]*">(.*)</bv-topic>', envelope["html"], re.DOTALL)
    if found is None or behaves == "never content":
        problem = {"kind": "missing-path-attribute", "message": "no path"}
        data = {"ok": False, "status": "needs-llm-step", "step": "correct-html", "errors": [problem]}
        return say("curate", data, success=False)
    assert set(re.findall(r"</?([a-z-]+)", found[2])) <= {"bv-highlights", "p"}
    if (TREE / f"{found[1]}.html").exists():
        data = {"ok": False, "status": "needs-llm-step", "errors": [{"kind": "path-exists", "message": "there"}]}
        return say("curate", data, success=False)
    keep(found[1], re.sub(r"<[^>]*>", " ", found[2]))
    return say("curate", {"ok": True, "status": "done", "filePath": f"{found[1]}.html"})


def keep(path: str, text: str) -> None:
    file = TREE / f"{path}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def search(query: str, most: int) -> None:
    wanted = set(query.lower().split())
    found = []
    for file in sorted(TREE.rglob("*.html")):
        text = file.read_text()
        if wanted & set(text.lower().replace(".", " ").split()):
            found.append({"path": str(file.relative_to(TREE)), "score": 0.8, "title": "t", "excerpt": text.strip()})
    say("search", {"results": found[:most], "totalFound": len(found)})


def say(command: str, data: dict[str, object], *, success: bool = True) -> None:
    print(json.dumps({"command": command, "success": success, "data": data, "timestamp": "2026-05-11T12:00:00.000Z"}))


if __name__ == "__main__":
    given, after = sys.argv[2:], []
    if "--" in given:
        given, after = given[: given.index("--")], given[given.index("--") + 1 :]
    assert given[:2] == ["--format", "json"]
    main(sys.argv[1], dict(zip(given[::2], given[1::2], strict=True)), after, os.environ["BRV_BEHAVES"])
