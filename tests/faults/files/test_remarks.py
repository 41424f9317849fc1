"""Files of the home that cannot be read: whoever asks one question is told on standard error, and gets the reply."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.children import said_by, started
from tests.cli.shell import typed


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "home/skills/tea").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    with serving_in_thread(openai_model(lambda _: Say("Hello."), keys=())) as server:
        (tmp_path / "home/config.yaml").write_text(f"model:\n  default: custom/m\n  base_url: {server.url}\n")
        yield tmp_path / "home"


def text(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda home: (home / name).write_bytes(content)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "approvals": (text("approvals.yaml", b"- {"), "approvals.yaml cannot be read, so Hermes will ask again"),
    "approvals that are a map": (text("approvals.yaml", b"a: 1\n"), "approvals.yaml cannot be read"),
    "approvals that are not text": (text("approvals.yaml", b"\xff\x00"), "approvals.yaml cannot be read"),
    "approvals that are a folder": (lambda home: (home / "approvals.yaml").mkdir(), "is a folder, not a file"),
    "soul that is not text": (text("SOUL.md", b"I am \xff\xfe\xfa you."), "SOUL.md is not UTF-8 text"),
    "soul that is a folder": (
        lambda home: (home / "SOUL.md").mkdir(),
        "is not a file; the session continues without it",
    ),
    "skill": (text("skills/tea/SKILL.md", b"no front matter"), "skills/tea cannot be used: "),
    "skill that is not text": (text("skills/tea/SKILL.md", b"\xff\xff"), "skills/tea cannot be used: "),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_is_a_remark_of_one_question_too(home: Path, name: str):
    make, words = BROKEN[name]
    make(home)

    said = said_by(started("-z", "hello", home=home, folder=home.parent / "work"))

    assert (said.code, said.out) == (0, "Hello.\n")
    assert words in said.err
    assert len([line for line in said.err.splitlines() if "was changed outside" not in line]) == 1


def test_a_home_that_is_well_has_no_remark(home: Path):
    (home / "approvals.yaml").write_text("# Nothing yet.\n")
    (home / "SOUL.md").write_text("I am you.")
    (home / "skills/tea").rmdir()
    typed(home, "learn", "adopt", "SOUL.md")

    assert said_by(started("-z", "hello", home=home, folder=home.parent / "work")).err == ""
