"""The shell around a command runs it once and writes down how it ended, whatever the command does to its shell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hermes_agent.sandbox.executions import noted_end
from hermes_agent.sandbox.wrapper import (
    CLAIM,
    INLINE,
    begin,
    dropping,
    is_same_shell,
    kept_directory,
    kept_variables,
    script,
)

SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]


def run(shell: str, folder: Path, text: str, *, kept: str = "", keeps_as: str = '"$PWD"') -> int:
    if len(text) >= INLINE:
        (folder / "command").write_text(text)
    rest = script(folder=str(folder), begins=begin(str(folder), "/"), kept=kept, keeps_as=keeps_as, text=text)
    made = f"{CLAIM}\n{rest}"
    with (folder / "out").open("ab") as out:
        return subprocess.run(
            [shell, "-c", made], cwd=folder, stdout=out, stderr=out, check=False, timeout=10
        ).returncode


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("true", 0),
        ("exit 3", 3),
        ("exec sh -c 'exit 4'", 4),
        ("trap 'exit 5' EXIT", 5),
        ("set -eux; false", 1),
        ("set -C; cd /usr; exit 6", 6),
        ("(exit 7)", 7),
        ("true; kill -TERM $$", 143),
        ("true; kill -HUP $$; true", 129),
    ],
)
def test_the_exit_code_is_written_down(tmp_path: Path, shell: str, text: str, code: int) -> None:
    assert run(shell, tmp_path, text) == code
    assert (tmp_path / "exit").read_text() == f"{code}\n"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("text", "code"), [("ulimit -f 0", 137), ("true", 0)], ids=["killed as it writes", "lives"])
def test_the_end_that_was_noted_stays_until_the_shell_has_written_its_own(
    tmp_path: Path, shell: str, text: str, code: int
) -> None:
    (tmp_path / "exit").write_text("137\n")

    run(shell, tmp_path, text, keeps_as="")

    assert noted_end((tmp_path / "exit").read_text()) == (code, None)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_it_leaves_can_be_taken_up_again(tmp_path: Path, shell: str) -> None:
    run(shell, tmp_path, 'cd /usr; export WORDS="it\'s\n two"')
    (tmp_path / "env").rename(tmp_path / "kept")
    (tmp_path / "pid").unlink()

    run(shell, tmp_path, 'echo "$WORDS"', kept=str(tmp_path / "kept"))

    assert kept_directory((tmp_path / "kept").read_text()) == "/usr"
    assert (tmp_path / "out").read_text() == "it's\n two\n"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("text", "same"), [("true", True), ("cd /usr", False), ("export A=1", False)])
def test_a_command_that_changed_neither_folder_nor_variables_left_the_same_shell(
    tmp_path: Path, shell: str, text: str, same: bool
) -> None:
    kept = []
    for name, each in (("one", "true"), ("two", text)):
        (tmp_path / name).mkdir()
        assert run(shell, tmp_path / name, f"cd /etc; {each}") == 0
        kept.append((tmp_path / name / "env").read_text())

    assert is_same_shell(*kept) is same


def test_who_comes_second_never_runs(tmp_path: Path) -> None:
    (tmp_path / "pid").touch()

    assert run("bash", tmp_path, "echo ran") == 125
    assert "ran" not in (tmp_path / "out").read_text()


def test_a_command_too_long_for_an_argument_is_read_from_its_file(tmp_path: Path) -> None:
    assert run("bash", tmp_path, f"exit 3 # {'x' * INLINE}") == 3


def test_variables_of_one_command_stand_over_those_of_its_shell_and_are_not_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("export P=old\nexport Q=stays\n")
    rest = script(
        folder=str(tmp_path),
        begins=begin(str(tmp_path), "/", {"P": "it's mine"}),
        kept=str(kept),
        keeps_as=f'"$PWD"{dropping(["P"])}',
        text="echo $P $Q",
    )
    told = subprocess.run(["bash", "-c", rest], capture_output=True, text=True, check=True, timeout=10)
    left = kept_variables((tmp_path / "env").read_text())

    assert told.stdout == "it's mine stays\n"
    assert (left.get("P"), left["Q"]) == (None, "stays")


def test_it_notes_who_runs_it(tmp_path: Path) -> None:
    run("bash", tmp_path, "echo $$")

    assert (tmp_path / "pid").read_text().split()[0] == (tmp_path / "out").read_text().strip()


def test_a_file_that_notes_no_directory_has_none() -> None:
    assert kept_directory("declare -x A=1\n") == ""
    assert kept_directory("") == ""


ODD = {"A": "plain", "B": 'qu"ote', "C": "back\\slash", "D": "a $HOME `x`", "E": "it's", "F": "", "G": "two words"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_variables_of_a_kept_shell_are_read_as_it_has_them(shell: str) -> None:
    told = subprocess.run([shell, "-c", "export -p"], env=ODD, capture_output=True, text=True, check=True, timeout=10)
    found = kept_variables(f"# /work\n{told.stdout}")

    assert {name: found[name] for name in ODD} == ODD


def test_a_variable_over_several_lines_ends_where_the_next_begins_and_one_without_a_value_is_none() -> None:
    kept = "# /w\ndeclare -x A=\"one\ntwo\"\ndeclare -x B\nexport C='x'\n"

    assert kept_variables(kept) == {"A": "one\ntwo", "C": "x"}
    assert kept_variables("") == {}
