"""What destroys never runs, in whatever disguise; everyday commands are let be; the rest is asked about.

Each row of `commands.jsonl` says what is expected (`run`; `unwalled`: a question without a wall; `ask`: a question
behind one too; `block`: never) and where the command is from.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hermes_agent.tools.danger.judging import BARE, BLOCKS, HELD, LEAVES, judge, judge_input
from hermes_agent.tools.danger.verdict import Where

ROWS = [json.loads(line) for line in (Path(__file__).parent / "commands.jsonl").read_text().splitlines()]
WALLED = Where(folder="/work/project", writable=("/work/project", "/tmp"), walled=True)
OPEN = Where(folder="/work/project", writable=("/work/project", "/tmp"))
BARELY = Where(folder="/work/project", writable=("/work/project", "/tmp"), bare=True)


def rows(expect: str) -> list[str]:
    return [row["command"] for row in ROWS if row["expect"] == expect]


def test_what_destroys_never_runs() -> None:
    ways = rows("block")

    assert len(ways) > 200
    assert [way for way in ways if not judge(way, WALLED).blocked or not judge(way, OPEN).blocked] == []


def test_everyday_commands_are_let_be() -> None:
    everyday = rows("run")

    assert len(everyday) > 400
    assert [each for each in everyday if (found := judge(each, OPEN)).asks or found.blocked] == []
    assert [each for each in everyday if judge(each, WALLED).asks] == []


def test_what_no_wall_holds_is_asked_about_behind_one_too() -> None:
    assert [each for each in rows("ask") if not judge(each, WALLED).asks] == []
    assert [each for each in rows("unwalled") if judge(each, WALLED).asks or not judge(each, OPEN).asks] == []


def test_every_rule_is_there_for_a_command_of_the_table() -> None:
    found = [judge(row["command"], OPEN) for row in ROWS]
    said = {reason for each in found for reason in (each.blocked, *each.asks)}

    assert {*BLOCKS, *LEAVES, *HELD, *BARE} - said == set()


@pytest.mark.parametrize(
    "command",
    ["rm -rf node_modules", "rm -rf ./build/*", "git clean -fd", "git reset --hard", "make clean", "rm -f *.pyc"],
)
def test_what_a_checkpoint_or_a_new_build_brings_back_is_not_asked_about(command: str) -> None:
    assert judge(command, WALLED).asks == judge(command, OPEN).asks == ()


def test_what_no_checkpoint_holds_is_asked_about(tmp_path: Path) -> None:
    where = Where(folder=str(tmp_path), writable=(str(tmp_path),), walled=True, largest=10)
    (tmp_path / "sub/.git").mkdir(parents=True)
    (tmp_path / "big.bin").write_bytes(b"x" * 11)
    (tmp_path / "small.txt").write_text("x")
    (tmp_path / ".env").write_text("x")

    for command in ("rm big.bin", "rm *.bin", "mv small.txt big.bin", "echo > .env", "rm -rf sub", "rm -rf sub/.git"):
        assert "no checkpoint holds" in "".join(judge(command, where).asks), command
    for command in ("rm small.txt", "rm new.bin", "echo x > small.txt", "cat big.bin"):
        assert judge(command, where).asks == ()
    assert judge("rm small.txt", Where(folder=where.folder, writable=where.writable, walled=True, largest=0)).asks


@pytest.mark.parametrize(("command", "leaves"), [("git push", True), ("sudo ls", True), ("curl -d x a.example", False)])
def test_what_is_of_no_use_inside_a_wall_is_known(command: str, leaves: bool) -> None:
    assert judge(command, WALLED).leaves is leaves


@pytest.mark.parametrize("command", ["ls -l", "cd src && grep -rn x . | head", "cat a.txt 2>/dev/null"])
def test_where_no_wall_can_be_had_plain_reading_goes_on(command: str) -> None:
    assert judge(command, BARELY).asks == ()


@pytest.mark.parametrize("command", ["make", "ls > x", "PATH=. ls", "./ls", "git log", "ls | sh", "python3 -c 1"])
def test_where_no_wall_can_be_had_everything_else_asks(command: str) -> None:
    assert judge(command, BARELY).asks


def test_the_programs_own_source_is_asked_about_unless_it_is_only_read() -> None:
    where = Where(folder="/work/project", writable=("/work/project",), closed="/work/project", walled=True)

    assert judge("make", where).asks
    assert judge("ls -l", where).asks == ()


@pytest.mark.parametrize("running", ["bash", "env X=1 zsh", "sudo -i", "ssh host", "docker exec -it x ash", "$SHELL"])
def test_what_is_typed_into_a_shell_is_judged_as_a_command(running: str) -> None:
    assert judge_input(running, "rm -rf /\n", WALLED).blocked
    assert judge_input(running, "git push\n", WALLED).asks
    assert judge_input(running, "ls -l\n", OPEN).asks == ()
    assert judge_input(running, "ls -l", OPEN).asks
    assert judge_input(running, "ls -l", WALLED).asks == judge_input(running, "\x03", OPEN).asks == ()


def test_input_for_other_programs_is_their_own() -> None:
    assert not judge_input("python3 ask.py", "rm -rf /\n", OPEN).blocked
    assert not judge_input("./install", "y\n", OPEN).asks
    assert judge_input("python3", "import os\n", OPEN).asks
    assert judge_input("never 'ends", "rm -rf /\n", OPEN).blocked


@pytest.mark.parametrize(
    "part", ["a", "1.", "a ", "a\n", "x=1;", "f(", "f(){ a|a;", "while(1) ", "{'a': 'b'}, ", "$(", "漢"]
)
def test_a_long_command_is_judged_in_time_that_grows_with_its_length(part: str) -> None:
    command = "cat > data <<'END'\n" + part * (40_000 // len(part)) + "\nEND\n" + part * (40_000 // len(part))
    before = time.process_time()

    judge(command, OPEN)

    assert time.process_time() - before < 5  # Seconds; what is not linear takes minutes.


LONG = "b" * 130


@pytest.mark.parametrize(
    "text",
    [
        ":(){ :|:& };:",
        "function b { b | b & }; b",
        "x=1; f () { sleep 1; f|f& }; f",
        f"{LONG}(){{ {LONG}|{LONG}& }}; {LONG}",
        "while((((((((((((1)))))))))))) fork()",
        f"while True: {'x = 1 and ' * 40} os.fork()",
        "while 1; fork(",
    ],
)
def test_a_function_that_only_calls_itself_twice_never_runs(text: str) -> None:
    assert judge(text, WALLED).blocked == "it is a fork bomb"
    assert judge(f"bash -c '{text}'", WALLED).blocked == "it is a fork bomb"


def test_the_same_word_on_both_sides_of_a_bar_is_no_fork_bomb() -> None:
    assert not judge('python3 -c "print(x|x); x(1)"', WALLED).blocked
