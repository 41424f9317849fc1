"""Sessions that are gone with their database: whichever way somebody comes in, they are told."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.children import Said, said_by, started


@pytest.fixture
def hermes(tmp_path: Path):
    """Begins `hermes WORDS` in front of a model that answers."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    with serving_in_thread(openai_model(lambda _: Say("Hello."), keys=())) as server:
        (home / "config.yaml").write_text(
            f"model:\n  default: custom/m\n  base_url: {server.url}\napi:\n  keys: {{}}\n  port: 0\n"
        )
        yield lambda *words: started(*words, home=home, folder=work)


def until_it_says(child: subprocess.Popen[bytes], word: str) -> Said:
    """What a server that is ended after that word wrote."""
    lines = []
    while word not in "".join(lines):
        lines.append(child.stdout.readline().decode())
        assert lines[-1], lines
    child.send_signal(signal.SIGTERM)
    said = said_by(child)
    return Said(code=said.code, out="".join(lines) + said.out, err=said.err)


WAYS: dict[str, tuple[tuple[str, ...], str]] = {
    "-z": (("-z", "hello"), ""),
    "-c -z": (("-c", "-z", "hello"), ""),
    "sessions": (("sessions", "list"), ""),
    "doctor": (("doctor", "--offline"), ""),
    "gateway": (("gateway", "run"), "without the sessions"),
    "api": (("api", "run"), "without the sessions"),
}


@pytest.mark.parametrize("way", WAYS)
def test_whoever_comes_first_is_told_that_the_sessions_are_gone(
    tmp_path: Path, hermes: Callable[..., subprocess.Popen[bytes]], way: str
):
    assert said_by(hermes("-z", "hello")).code == 0
    (tmp_path / "home" / "hermes.db").unlink()

    words, until = WAYS[way]
    said = until_it_says(hermes(*words), until) if until else said_by(hermes(*words))

    assert (said.out + said.err).count("a new one begins, without the sessions of before.") == 1
    assert "without the sessions" not in said_by(hermes("-z", "hello")).err


@pytest.mark.parametrize("way", ["-z", "-c -z", "sessions", "doctor"])
def test_an_emptied_database_ends_with_a_sentence(
    tmp_path: Path, hermes: Callable[..., subprocess.Popen[bytes]], way: str
):
    assert said_by(hermes("-z", "hello")).code == 0
    (tmp_path / "home" / "hermes.db").write_bytes(b"")

    said = said_by(hermes(*WAYS[way][0]))

    assert said.code != 0
    assert "is empty (0 bytes)" in said.err + said.out
    assert "Traceback" not in said.err
    assert (tmp_path / "home" / "hermes.db").stat().st_size == 0
