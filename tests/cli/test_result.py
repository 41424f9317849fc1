"""A question in a script: what was refused, what would allow it, and one object at the end."""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.core.messages import Image, ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.app.place import settle_home
from tests.children import Said, said_by, started

NEEDS = "It needs a person's approval (it deletes what its words do not name), and no person is here."
REFUSED = f"Refused: rm -rf build$NONE\n  {NEEDS} `--allow 'rm -rf build$NONE'` allows it.\n"


def png() -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")


def script(heard: Heard) -> object:
    words = heard.last.text
    if any(isinstance(part, ToolResult) for part in heard.last.parts):
        return Say("Done.")
    if any(isinstance(part, Image) for part in heard.last.parts):
        return Say("I see a picture.")
    if words.startswith("rm"):
        return Call("terminal", {"command": words})
    if words == "write":
        return [Call("write_file", {"path": "new.txt", "content": "new"}), Call("read_file", {"path": "/etc/shadow"})]
    return Say(words)


class Shell:
    """A person's shell in a folder that holds another one, `build`."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        (self.work / "build").mkdir(parents=True)

    def run(self, *arguments: str) -> Said:
        return said_by(started(*arguments, home=self.home, folder=self.work))

    @property
    def built(self) -> bool:
        return (self.work / "build").exists()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    with serving_in_thread(openai_model(script, keys=())) as server:
        settle_home(shell.home, server.url)
        yield shell


def test_what_was_refused_stands_beside_the_reply_with_what_would_allow_it(shell: Shell) -> None:
    assert shell.run("-z", "rm -rf build$NONE") == Said(code=0, out="Done.\n", err=REFUSED)
    assert shell.built


def test_a_refusal_fails_where_that_is_wanted(shell: Shell) -> None:
    assert shell.run("--fail-on-refusal", "-z", "rm -rf build$NONE") == Said(code=7, out="Done.\n", err=REFUSED)
    assert shell.run("--fail-on-refusal", "-z", "Hi") == Said(code=0, out="Hi\n", err="")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--allow", "rm -rf build$NONE"), ""),
        (("--allow", "make *", "--allow", "rm *"), ""),
        (("--yolo",), ""),
        (("--allow", "*"), "`--allow '*'` allows every call that would need your approval, as --yolo does.\n"),
    ],
)
def test_what_is_allowed_for_one_call_of_the_program_runs(shell: Shell, options: tuple[str, ...], told: str) -> None:
    assert shell.run("--fail-on-refusal", *options, "-z", "rm -rf build$NONE") == Said(code=0, out="Done.\n", err=told)
    assert not shell.built


def test_what_is_never_allowed_is_refused_also_then_and_nothing_is_advised(shell: Shell) -> None:
    said = shell.run("--yolo", "-z", "rm -rf /")

    assert said.err == "Refused: rm -rf /\n  Never allowed here: it destroys the whole file system.\n" or (
        said.err.startswith("Refused: rm -rf /\n  Never allowed here: ") and "--allow" not in said.err
    )


def test_one_object_has_what_a_script_needs(shell: Shell) -> None:
    refused = shell.run("--json=result", "--fail-on-refusal", "-z", "rm -rf build$NONE")
    wrote = json.loads(shell.run("--json=result", "-z", "write").out)

    told = json.loads(refused.out)
    assert refused.code == told["exit_code"] == 7
    assert refused.err == REFUSED
    assert told["refusals"] == [{"call": "rm -rf build$NONE", "reason": NEEDS, "allow": "rm -rf build$NONE"}]
    assert (told["reply"], told["outcome"], told["problem"], told["files"]) == ("Done.", "answered", "", [])
    assert told["session"]
    assert (wrote["reply"], wrote["files"], wrote["exit_code"]) == ("Done.", ["new.txt"], 0)
    assert [(each["call"], each["allow"]) for each in wrote["refusals"]] == [("read_file:/etc/shadow", "")]


def test_a_run_that_fails_is_told_in_the_object_too(shell: Shell) -> None:
    with (shell.home / "config.yaml").open("a") as file:
        file.write("agent:\n  max_turns: 1\n")
    said = shell.run("--json=result", "-z", "rm -rf build$NONE")

    told = json.loads(said.out)
    assert (said.code, told["exit_code"], told["outcome"]) == (6, 6, "limit")
    assert "`agent.max_turns`" in told["problem"]


def test_files_are_given_with_the_question(shell: Shell) -> None:
    (shell.work / "p.png").write_bytes(png())
    (shell.work / "a.txt").write_text("one\n")
    (shell.work / "b.txt").write_text("two\n")

    given = shell.run("--file", "a.txt", "--file", "b.txt", "-z", "Read:").out
    assert given.split() == ["Read:", "a.txt:", "one", "b.txt:", "two"]
    assert shell.run("--file", "p.png", "-z", "What is it?").out == "I see a picture.\n"
    assert shell.run("--file", "none.txt", "-z", "Hi") == Said(code=1, out="", err="none.txt is not there.\n")
    assert shell.run("--file", ".", "-z", "Hi") == Said(code=1, out="", err=". is not a file.\n")


def test_a_large_file_that_is_there_already_is_read_where_it_is(shell: Shell) -> None:
    (shell.work / "large.txt").write_text("x\n" * 200_000)
    said = shell.run("--file", "large.txt", "-z", "Hi")

    assert f"reads the rest from a file: `{shell.work}/large.txt`." in said.err
    assert f"kept whole in `{shell.work}/large.txt`" in said.out
    assert not (shell.home / "cache" / "input").exists()


def test_strict_input_is_refused_before_a_session_begins(shell: Shell) -> None:
    (shell.work / "large.txt").write_text("x\n" * 200_000)
    said = shell.run("--strict-input", "--file", "large.txt", "-z", "Hi")

    assert (said.code, said.out) == (8, "")
    assert said.err.startswith("The input has 400,000 bytes, and one message to this model may have 128,000.")
    assert "There are no sessions yet" in shell.run("sessions", "list").err
