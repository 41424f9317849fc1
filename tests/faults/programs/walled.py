"""Runs the commands of its input in the place of the settings, each in an empty workspace: `walled KIND FOLDER`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from hermes_agent.app.places import make_place
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.place import Command, Place, PlaceFailed
from hermes_agent.tools.settings import TerminalSettings

SECONDS = 8.0


async def run(place: Place, number: int, text: str, folder: str) -> str:
    """What a command prints, or why it was not started."""
    try:
        running = await place.start(f"rig/{number}", Command(text=text, folder=folder, limit=SECONDS))
        await asyncio.wait_for(running.wait(), SECONDS + 3)
        output = (await running.read(0, 1 << 20)).decode("utf-8", "replace")
        await running.kill()
    except (PlaceFailed, TimeoutError) as error:
        return f"[{error}]"
    return output


def main(kind: str, folder: str) -> None:
    """Answer each line."""
    settings = TerminalSettings(jail=kind, network=("pypi.org",))  # type: ignore[arg-type] # the rig names a kind
    root = Path(os.environ["HERMES_HOME"])
    place = make_place(Home(root=root, base=root), settings, os.environ)
    bystander = subprocess.Popen(["sleep", "1000"])
    print(json.dumps({"wall": place.wall()}), flush=True)
    with asyncio.Runner() as runner:
        for number, line in enumerate(sys.stdin):
            subprocess.run(f"chmod -R u+rwx {folder}; rm -rf {folder}; mkdir {folder}", shell=True, check=True)
            output = runner.run(run(place, number, json.loads(line)["command"], folder))
            state = Path(f"/proc/{bystander.pid}/stat").read_text().split()[2]
            print(json.dumps({"output": output, "bystander": state == "S"}), flush=True)
        bystander.kill()
        runner.run(place.close())


if __name__ == "__main__":
    main(*sys.argv[1:])
