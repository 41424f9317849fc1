"""`hermes prompt`."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import click
import pytest

from hermes_agent.cli.commands.prompt import SAME, Part, differences, measured
from hermes_agent.core.errors import UnknownSession
from hermes_agent.core.tool import Quarantined
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.children import said_by, started
from tests.cli.kept import GARDEN, WORK, filled
from tests.cli.shell import typed


def test_a_sessions_prompt_is_measured_by_section(tmp_path: Path) -> None:
    lines = typed(filled(tmp_path), "prompt", "--session", GARDEN).out.splitlines()

    assert [line.split()[:3] for line in lines] == [
        ["SECTION", "BYTES", "TOKENS"],
        ["identity", "15", "4"],
        ["date", "18", "5"],
        ["tools", "2", "1"],
        ["all", "35", "10"],
    ]


def test_the_texts_are_there_in_full(tmp_path: Path) -> None:
    home = filled(tmp_path)

    assert typed(home, "prompt", "--session", GARDEN, "--text", "identity").out == "You are Hermes.\n"
    assert json.loads(typed(home, "prompt", "--session", GARDEN, "--json").out)[0]["text"] == "You are Hermes."
    with pytest.raises(click.UsageError, match="identity, date, tools"):
        typed(home, "prompt", "--session", GARDEN, "--text", "nothing")


def test_two_prompts_are_compared(tmp_path: Path) -> None:
    said = typed(filled(tmp_path), "prompt", "--session", GARDEN, "--against", GARDEN)

    assert said.out == "Both prompts are the same, byte for byte.\n"


def test_two_prompts_are_compared_line_by_line(tmp_path: Path) -> None:
    def part(name: str, text: str) -> Part:
        return Part(name=name, bytes=0, tokens=0, hash="", text=text)

    one, two = (
        [part("identity", "I\nam Ann"), part("date", "Mon")],
        [part("identity", "I\nam Bob"), part("date", "Mon")],
    )

    assert differences(one, two).splitlines() == [
        "--- identity",
        "+++ identity",
        "@@ -1,2 +1,2 @@",
        " I",
        "-am Ann",
        "+am Bob",
    ]
    assert typed(filled(tmp_path), "prompt", "--diff", GARDEN, GARDEN).out == f"{SAME}\n"


def test_a_session_without_a_prompt_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownSession, match="has no prompt yet"):
        typed(filled(tmp_path), "prompt", "--session", WORK)


def test_a_session_that_there_is_not_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownSession, match="20990101"):
        typed(filled(tmp_path), "prompt", "--session", "20990101_000000_nobody")


def test_the_prompt_of_a_new_session_is_shown_before_a_model_is_chosen(tmp_path: Path) -> None:
    parts = json.loads(typed(filled(tmp_path), "prompt", "--json").out)

    assert [part["name"] for part in parts][:2] == ["identity", "how to work"]
    assert parts[-1]["name"] == "tools"
    assert "read_file" in parts[-1]["text"]


@pytest.mark.parametrize("more", ["", "  window: 8192\ntools:\n  cli:\n    disabled: [web]\n"])
def test_the_prompt_of_a_new_session_is_what_it_gets_byte_for_byte(tmp_path: Path, more: str) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (work / ".git", home / "memories", home / "skills" / "bake"):
        folder.mkdir(parents=True)
    (home / "SOUL.md").write_text("I am somebody.  \n\n" * 300)
    (home / "memories" / "MEMORY.md").write_text("The person likes tabs.")
    (home / "skills" / "bake" / "SKILL.md").write_text("---\nname: bake\ndescription: Bakes a cake.\n---\nBake.\n")
    (work / "AGENTS.md").write_text("Run the tests.\n")
    with serving_in_thread(openai_model([Say("Hello.")], keys=())) as server:
        (home / "config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n{more}")
        before, begun, after = (
            said_by(started(*words, home=home, folder=work))
            for words in (("prompt", "--json"), ("-z", "Hi"), ("prompt", "--text", "system"))
        )
        body = server.exchanges[0].body
    with closing(sqlite3.connect(home / "hermes.db")) as database:
        ((session,),) = database.execute("SELECT id FROM session").fetchall()

    assert (begun.code, begun.out) == (0, "Hello.\n")
    assert body["messages"][0] == {"role": "system", "content": after.out.removesuffix("\n")}
    assert "bake" in after.out
    assert "likes tabs" in after.out
    parts = json.loads(before.out)
    assert "\n\n".join(filter(None, (part["text"].strip() for part in parts[:-1]))) == after.out.removesuffix("\n")
    assert [name for name, *_ in json.loads(parts[-1]["text"])] == [tool["function"]["name"] for tool in body["tools"]]
    kept = said_by(started("prompt", "--session", session, "--text", "system", home=home, folder=work))
    assert kept.out == after.out


def test_the_prompt_of_a_new_session_fits_the_window_of_its_model(tmp_path: Path) -> None:
    home = filled(tmp_path)
    (home / "SOUL.md").write_text("I am somebody. " * 2_000)
    large = json.loads(typed(home, "prompt", "--json").out)
    (home / "config.yaml").write_text("model:\n  default: ollama/small\n  window: 8192\n")
    small = json.loads(typed(home, "prompt", "--json").out)

    assert small[0]["tokens"] < large[0]["tokens"]


def test_a_new_prompt_is_compared_with_that_of_a_session(tmp_path: Path) -> None:
    lines = typed(filled(tmp_path), "prompt", "--against", GARDEN).out.splitlines()

    assert [line.split()[0] for line in lines][:2] == ["SECTION", "identity"]
    assert not any("byte for byte" in line for line in lines)


def test_tools_that_are_not_offered_are_named_below() -> None:
    said = measured([], [Quarantined(name="odd", reason="its schema refers to itself")])

    assert said.splitlines()[-1] == "The tool `odd` is not offered: its schema refers to itself."
