"""From a command line to what answers it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.cli.start import unwritten
from tests.cli.shell import PROGRAM, ROOT, program
from tests.measured import measured

READ = r"""
import re, sys
from pathlib import Path
from hermes_agent.cli.start import read_stdin
found = read_stdin(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
print(ascii(found) if isinstance(found, str) else f"{found.path.name} {found.size} {found.lines}")
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def reader(folder: Path, most: int = 1 << 40, prompt: str = "ask") -> list[str]:
    return [sys.executable, "-c", READ, prompt, str(folder), str(most)]


def read(folder: Path, content: bytes | None = None, most: int = 1 << 40, stdin: int | None = None) -> tuple[str, str]:
    """What was found, and what was said beside it."""
    done = subprocess.run(
        reader(folder, most),
        env={"PYTHONPATH": str(ROOT / "src"), **measured()},
        **({"stdin": stdin} if content is None else {"input": content}),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().splitlines()[0], done.stderr.decode()


def test_text_is_read_whatever_its_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, b"some\xff text") == (r"'some\ufffd text'", "")
    assert read(tmp_path, "\ufeffwide".encode("utf-16-le"))[0] == "'wide'"


def test_nothing_and_no_input_at_all_are_empty(tmp_path: Path) -> None:
    assert read(tmp_path, stdin=subprocess.DEVNULL) == ("''", "")
    closed = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *reader(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "src"), **measured()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert closed.stdout.startswith("''\n")


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("from a file")
    with (tmp_path / "f").open() as file:
        assert read(tmp_path, stdin=file.fileno())[0] == "'from a file'"


def test_what_is_no_text_is_a_file_as_it_came(tmp_path: Path) -> None:
    for content in (PNG, b"\x7fELF\0\0\0", b"%PDF-1.7\n"):
        name, size, _ = read(tmp_path / "kept", content)[0].split()
        assert (tmp_path / "kept" / name).read_bytes() == content
        assert int(size) == len(content)


def test_what_is_large_is_a_file_and_never_all_in_memory(tmp_path: Path) -> None:
    line = b"%d\n" % 7 * (1 << 19)
    with subprocess.Popen(
        reader(tmp_path), env={"PYTHONPATH": str(ROOT / "src"), **measured()}, stdin=-1, stdout=-1
    ) as process:
        assert process.stdin is not None
        for _ in range(100):  # 100 MiB
            process.stdin.write(line)
        found, memory = process.communicate()[0].decode().splitlines()

    assert found.split()[1:] == [str(100 << 20), str(50 << 20)]
    assert int(memory) < 60
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [100 << 20]


def test_what_never_ends_is_cut_and_said_to_be(tmp_path: Path) -> None:
    with subprocess.Popen(["yes"], stdout=-1) as endless:
        assert endless.stdout is not None
        found, spoken = read(tmp_path, most=6_000_000, stdin=endless.stdout.fileno())
        endless.kill()

    assert 6_000_000 <= int(found.split()[1]) < 8_000_000
    assert spoken.startswith("Standard input was cut after 6,")
    assert (tmp_path / found.split()[0]).read_text().endswith("what came later was not read.]\n")


def test_a_pipe_that_brings_nothing_or_no_end_is_spoken_of_once(tmp_path: Path) -> None:
    for first, came in ((b"", ""), (b"early ", ", of which 6 bytes came")):
        reading, writing = os.pipe()
        process = subprocess.Popen(
            reader(tmp_path),
            env={"PYTHONPATH": str(ROOT / "src"), **measured()},
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.write(writing, first)
        assert process.stderr is not None
        spoken = process.stderr.readline()
        os.write(writing, b"late")
        os.close(writing)
        os.close(reading)

        assert spoken.startswith(f"Waiting for the rest of the prompt on standard input{came} (`< /dev/null` if")
        assert process.communicate()[0].startswith(f"'{first.decode()}late'\n")


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    limited = ["sh", "-c", 'ulimit -f 4096; trap "" XFSZ; "$@"', "sh", *reader(tmp_path)]
    done = subprocess.run(
        limited,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"], **measured()},
        input=b"x" * (8 << 20),
        capture_output=True,
        check=False,
    )

    assert f"HomeError: {tmp_path} cannot be written (File too large)" in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


FULL = Path("/dev/full")


def test_a_mistake_is_one_sentence_and_the_code_of_usage(tmp_path: Path) -> None:
    said = program("cofnig", home=tmp_path)

    assert said.code == 2
    assert "There is no command `cofnig`. Did you mean `hermes config`?" in said.err
    assert said.out == ""


def test_an_error_of_ours_is_one_sentence_without_a_traceback(tmp_path: Path) -> None:
    said = program("-p", "../x", "config", "path", home=tmp_path)

    assert said.code == 4
    assert said.err == "`../x` is not a profile name: at most 64 of a-z, 0-9, `-` and `_`, a letter or digit first.\n"


def test_nothing_asked_is_told(tmp_path: Path) -> None:
    said = program("-z", "  ", home=tmp_path)

    assert said.code == 2
    assert said.err.startswith("There is no prompt. Use `hermes -z PROMPT`")


def test_a_reader_that_leaves_early_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "config", "show", "--all"],
        env={"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(tmp_path), **measured()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()

    assert (process.wait(), said) == (1, "")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_output_that_finds_no_room_is_one_sentence(tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "config", "path"],
            env={"PYTHONPATH": str(ROOT / "src"), "HERMES_HOME": str(tmp_path), **measured()},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=25,
            check=False,
        )

    assert (done.returncode, done.stderr) == (1, "The output could not be written: No space left on device.\n")


def test_another_failure_of_the_system_is_a_sentence_and_a_defect_keeps_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for error in (PermissionError(errno.EACCES, "Permission denied"), OSError(errno.ENOSPC, "No space", "a.txt")):
        assert unwritten(error) == 1
        assert f"{error.strerror}. What to do: " in capsys.readouterr().err
    with pytest.raises(OSError, match="odd"):
        unwritten(OSError("odd"))


def test_a_terminal_that_knows_no_unicode_gets_escapes(tmp_path: Path) -> None:
    home = tmp_path / "höme"

    said = program("config", "path", home=home, variables={"PYTHONIOENCODING": "ascii"})

    assert said.out == f"{tmp_path}/h\\xf6me/config.yaml\n"


def test_what_is_piped_in_joins_the_question(tmp_path: Path) -> None:
    said = program("-m", "demo/scripted", "-z", "About this:", "--json", home=tmp_path, stdin=b"piped words\n")

    assert said.code == 0, said.err
    assert '"text":"About this:\\n\\n"' in said.out
    assert '"text":"piped words"' in said.out


def test_without_a_model_a_question_is_one_sentence_and_its_code(tmp_path: Path) -> None:
    said = program("-z", "hello", home=tmp_path)

    assert said.code == 3
    assert "`hermes setup`" in said.err
    assert "`hermes demo`" in said.err
    assert "Traceback" not in said.err
