"""The code blocks of the manual, and how to run one as a reader would."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.source import ROOT

FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>.*?) -->\n+)?```(?P<language>python|console)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
DEMO_MODEL = "demo"
START = "import sys; sys.argv[0] = 'hermes'; from hermes_agent.cli.main import main; sys.exit(main())"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block. `reason` is why it is not run, None where it is."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> list[Block]:
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("text")) + 1,
            language=found["language"],
            text=found["text"],
            reason=found["reason"],
        )
        for found in FENCE.finditer(text)
    ]


def run(block: Block, folder: Path) -> list[str]:
    """Run the block in an empty folder with the demo model; what went otherwise than the page says."""
    provide_command(folder)
    if block.language == "python":
        (folder / "block.py").write_text(block.text)
        code, output = call(f'"{sys.executable}" block.py', folder)
        return [f"{block}: {output}"] if code else []
    return [
        complaint
        for command, expected in commands_of(block.text)
        for complaint in tried(block, command, expected, folder)
    ]


def tried(block: Block, command: str, expected: str, folder: Path) -> list[str]:
    code, output = call(command, folder)
    if code:
        return [f"{block}: `{command}` ended with {code}: {output}"]
    if expected and not fits(expected, output):
        return [f"{block}: `{command}` printed:\n{output}instead of:\n{expected}"]
    return []


def commands_of(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows for it, empty where it shows none."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def fits(expected: str, output: str) -> bool:
    """Whether the output is the shown one, where `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


def provide_command(folder: Path) -> None:
    """Put `hermes` where both `hermes` and `./hermes` find it."""
    command = folder / "hermes"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{START}" "$@"\n')
    command.chmod(0o755)
    (folder / "home").mkdir()


def call(command: str, folder: Path, where: Path | None = None) -> tuple[int, str]:
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(folder / "home"),
        "HERMES_HOME": str(folder / "home/.hermes"),
        "HERMES_MODEL": DEMO_MODEL,
    }
    result = subprocess.run(
        ["sh", "-c", command],
        cwd=where or folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=25,
        check=False,
    )
    return result.returncode, result.stdout
