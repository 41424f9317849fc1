"""`hermes chat`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import program


def test_it_begins_the_chat_with_the_options_before_it(tmp_path: Path) -> None:
    said = program("-m", "demo/scripted", "chat", home=tmp_path, stdin=b"/status\n")

    assert (said.code, said.err) == (0, "")
    assert "demo/scripted (scripted model)" in said.out
    assert "Come back with: hermes --resume" in said.out


def test_it_is_recorded_like_the_chat_that_it_is(tmp_path: Path) -> None:
    said = program("--record", str(tmp_path / "tape"), "-m", "demo", "chat", home=tmp_path, stdin=b"Hi\n")

    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "tape").exists()
