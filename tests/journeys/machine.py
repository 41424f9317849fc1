"""A machine on which `hermes` runs: a home, a folder, a scripted model, and what the machine lacks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from tests.children import Said, said_by, started

PROGRAMS = "bash sh cat ls head wc grep pwd touch python3 env make git setsid mkfifo ln rm mkdir"
LACKING = str(Path(__file__).with_name("lacking.py"))


class Machine:
    """`lacks` names what is not there: `bwrap`, and what `tests/journeys/lacking.py` takes away."""

    def __init__(self, folder: Path, server: ModelServer, calls: list[Call]) -> None:
        self.home, self.work, self.bin, self.server = folder / "home", folder / "work", folder / "bin", server
        self.calls, self.lacks = calls, ("bwrap", "landlock")
        for each in (self.home, self.work, self.bin):
            each.mkdir()
        for name in PROGRAMS.split():
            (self.bin / name).symlink_to(str(shutil.which(name) or "/bin/false"))
        self.configure("")

    def configure(self, more: str) -> None:
        (self.home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {self.server.url}\n{more}")

    @property
    def below(self) -> list[str]:
        """The words of a program that starts another where it lacks that."""
        taken = ",".join(name for name in self.lacks if name != "bwrap")
        return [LACKING, taken] if taken else []

    def hermes(self, *words: str, folder: Path | None = None, before: Sequence[str] = (), **more: str) -> Said:
        starter = [*before, *([sys.executable, *self.below] if self.below else [])]
        more |= {"PATH": str(self.bin)} if "bwrap" in self.lacks else {}
        return said_by(started(*words, home=self.home, folder=folder or self.work, before=starter, **more))

    def results(self) -> list[str]:
        """What the model was told of its calls."""
        parts = (part for message in self.server.asked[-1].messages for part in message.parts)
        return [part.text for part in parts if isinstance(part, ToolResult)]


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    calls: list[Call] = []

    def script(heard: Heard) -> list[Piece]:
        made = sum(message.role == "assistant" for message in heard.messages)
        return [calls[made]] if made < len(calls) else [Say("Done.")]

    with serving_in_thread(openai_model(script, keys=())) as server:
        yield Machine(folder, server, calls)
