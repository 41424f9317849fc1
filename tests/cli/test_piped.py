"""The piped part of a prompt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.shell import ROOT
from tests.measured import measured

READ = "import sys; from hermes_agent.cli.piped import piped_text; print(ascii(piped_text(sys.argv[1])))"


def piped(prompt: str, stdin: int | None = None, content: bytes | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", READ, prompt],
        env={"PYTHONPATH": str(ROOT / "src"), **measured()},
        **({"stdin": stdin} if content is None else {"input": content}),
        capture_output=True,
        check=True,
    )
    return subprocess.CompletedProcess(done.args, 0, done.stdout.decode().strip(), done.stderr.decode())


def test_what_is_piped_in_is_read_whatever_its_bytes() -> None:
    assert piped("ask", content=b"some\xff text").stdout == r"'some\ufffd text'"


def test_nothing_and_no_input_at_all_are_empty() -> None:
    assert piped("ask", stdin=subprocess.DEVNULL).stdout == "''"
    closed = subprocess.run(
        ["sh", "-c", f"{sys.executable} -c '{READ}' ask <&-"],
        env={"PYTHONPATH": str(ROOT / "src"), **measured()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert closed.stdout == "''\n"


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("from a file")
    with (tmp_path / "f").open() as file:
        assert piped("", stdin=file.fileno()).stdout == "'from a file'"


def test_too_much_is_cut_visibly() -> None:
    assert piped("ask", content=b"x" * (11 << 20)).stdout.endswith(r"x\n[cut: more than 10 MiB were piped in]'")


def test_a_pipe_that_brings_nothing_is_spoken_of() -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", READ, "ask"],
        env={"PYTHONPATH": str(ROOT / "src"), **measured()},
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    spoken = process.stderr.readline()
    os.write(writing, b"late")
    os.close(writing)
    os.close(reading)

    assert spoken.startswith("Waiting for the rest of the prompt on standard input")
    assert process.communicate()[0] == "'late'\n"
