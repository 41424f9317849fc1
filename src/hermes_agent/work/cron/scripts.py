"""Scripts of jobs: files of the folder `scripts`, run once for each instant, and found again after a crash."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, HomeError
from hermes_agent.host.paths import read_small
from hermes_agent.sandbox.place import Command, Place, begun, end_of_output
from hermes_agent.store.work.cron.records import Instant

MOST_OUTPUT = 100_000
"""Bytes of a script's output that are read; the end of a longer one."""
RUNS = {".py": "python3", ".sh": "sh", ".bash": "bash", ".js": "node"}
LARGEST = 100_000
"""Bytes of a script."""
FORM = """f=$(mktemp) || exit 125
cat > "$f" <<'{mark}'
{text}
{mark}
chmod 700 "$f"
{run}
code=$?
rm -f "$f"
exit $code
"""
LAST_LINES = 2000
WAKE = "wakeAgent"


class Broken(HermesError):
    """A job that cannot run at all until a person changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a script said, and its exit code (None: nobody saw it end)."""

    text: str
    code: int | None

    @property
    def wakes(self) -> bool:
        """Whether the agent is to run: unless the last line is `{"wakeAgent": false}`."""
        last = self.text.strip().rpartition("\n")[2]
        with suppress(ValueError):
            found = json.loads(last)
            return not (isinstance(found, dict) and found.get(WAKE) is False)
        return True

    def failure(self, name: str) -> str:
        """Why it failed; empty where it did not."""
        if self.code == 0:
            return ""
        how = "ended, and nobody saw how" if self.code is None else f"ended with {self.code}"
        return f"The script {name} {how}. {self.text.strip()[-LAST_LINES:]}".strip()


def script_path(folder: Path, name: str) -> Path:
    """The file of a script. Raises `Broken` for one outside the folder, also by a link, or one that is not there."""
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        inside = False
    if not name or not inside:
        raise Broken(f"`{name}` is not in {folder}: scripts of jobs stand there.")
    if not path.is_file():
        raise Broken(f"There is no script {path}.")
    return path.resolve()


def command_of(folder: Path, name: str) -> str:
    """The command that runs a script. It holds the script's text: behind the wall, and on other machines, there is no
    home. Raises `Broken`."""
    path = script_path(folder, name)
    try:
        content = read_small(path, LARGEST)
        text = (content or b"").decode()
    except (HomeError, ValueError) as error:
        raise Broken(f"The script {path} cannot be run: it is not {LARGEST:,} bytes of text.") from error
    run = RUNS.get(path.suffix) or ("" if text.startswith("#!") else "sh")
    return FORM.format(text=text, mark=f"END_{sha256(text.encode()).hexdigest()[:16]}", run=f'{run} "$f"'.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """Runs scripts in a place, with a time limit in seconds."""

    place: Place
    folder: Path
    seconds: float

    async def run(self, name: str, instant: Instant, workdir: str, part: str = "") -> Output:
        """Run a script for an instant, or wait for the one that an earlier process started. Raises `HermesError`."""
        text = await asyncio.to_thread(command_of, self.folder, name)
        command = Command(text=text, folder=workdir, limit=self.seconds)
        exec_id = f"cron/{instant.job}-{instant.due}{part}"
        running = await begun(self.place, exec_id, command)
        ended = await running.wait()
        read = await end_of_output(running, MOST_OUTPUT)
        return Output(text=read.decode("utf-8", "replace"), code=ended.code)
