"""A long piece of work on a real source tree: 60 turns, 100 tool calls, the files that must come out of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say

TURNS = 60
CALLS = 100
EXTRA = 2
PACKAGE = "click"
"""A public project whose source is on every machine that runs these tests, because the program needs it."""
TASK = "Put a marker line into the modules one after the other, and keep a journal of it."
REPORT = "All modules are marked."
JOURNAL = "journal.txt"


def source_tree(folder: Path) -> list[str]:
    """Copy the package's sources into the folder; the names of its modules, in order."""
    spec = find_spec(PACKAGE)
    assert spec is not None and spec.origin is not None
    for module in sorted(Path(spec.origin).parent.glob("*.py")):
        shutil.copy(module, folder / module.name)
    return sorted(path.name for path in folder.glob("*.py"))


class LongRun:
    """The script of the model: what it says depends only on how often it has spoken.

    20 rounds of 3 turns: look (search and read, in the first rounds also a listing, which makes 100 calls), change
    (patch one module), note (a command that appends to the journal, and the file that keeps the count).
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules

    def __call__(self, heard: Heard) -> list[Piece]:
        """The answer to a question."""
        spoken = sum(message.role is Role.ASSISTANT for message in heard.messages)
        return self.turn(spoken)

    def turn(self, spoken: int) -> list[Piece]:
        """The answer after so many answers."""
        if spoken >= TURNS - 1:
            return [Say(REPORT)]
        number, step = divmod(spoken, 3)
        module = self._modules[number % len(self._modules)]
        if step == 0:
            return [
                Say(f"Round {number}: {module}."),
                Call("search_files", {"pattern": r"^from __future__", "path": module}),
                Call("read_file", {"path": module, "limit": 3}),
                *([Call("search_files", {"pattern": "*.py", "target": "files"})] if number < EXTRA else []),
            ]
        if step == 1:
            return [Call("patch", {"path": module, "old_string": FIRST, "new_string": f"{FIRST}\n# round {number}"})]
        return [
            Call("terminal", {"command": f"echo {number} {module} >> {JOURNAL}"}),
            Call("write_file", {"path": f"count/{number}.txt", "content": f"{number + 1}\n"}),
        ]

    def expected(self, folder: Path, pristine: Path) -> list[str]:
        """What is wrong with the files after the run; empty where all is right."""
        wrong = []
        rounds = [divmod(spoken, 3) for spoken in range(TURNS - 1)]
        marked = [number for number, step in rounds if step == 1]
        noted = [number for number, step in rounds if step == 2]
        for module in self._modules:
            marks = "".join(
                f"\n# round {number}"
                for number in reversed(marked)
                if self._modules[number % len(self._modules)] == module
            )
            text = (pristine / module).read_text().replace(FIRST, f"{FIRST}{marks}", 1)
            if (folder / module).read_text() != text:
                wrong.append(f"{module} is not as it should be")
        lines = "".join(f"{number} {self._modules[number % len(self._modules)]}\n" for number in noted)
        if (folder / JOURNAL).read_text() != lines:
            wrong.append(f"{JOURNAL} is not as it should be")
        wrong += [
            f"count/{number}.txt"
            for number in noted
            if (folder / f"count/{number}.txt").read_text() != f"{number + 1}\n"
        ]
        return wrong

    def calls(self) -> int:
        """How many tool calls the whole run makes."""
        return sum(isinstance(piece, Call) for spoken in range(TURNS) for piece in self.turn(spoken))


FIRST = "from __future__ import annotations"
