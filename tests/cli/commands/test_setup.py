"""`hermes setup`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import typed

KEY = "secret-key-that-is-typed"


def test_the_first_key_that_works_is_taken_without_questions(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        said = typed(
            tmp_path, "setup", "--no-local", "--non-interactive", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url
        )

    assert said.code == 0
    assert said.out == "The default model is now openai/gpt-5.2. `hermes` starts a chat.\n"
    assert (tmp_path / "config.yaml").read_text() == "model:\n  default: openai/gpt-5.2\n"
    assert not (tmp_path / ".env").exists(), "a key of the environment stays there"


def test_a_key_that_is_refused_is_told_and_the_next_model_is_tried(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=("another",))) as server:
        said = typed(
            tmp_path, "setup", "--no-local", "--non-interactive", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url
        )

    assert said.out.startswith("The default model is now demo/scripted.")
    assert "openai/gpt-5.2 at 127.0.0.1" in said.err
    assert KEY not in said.out + said.err


def test_with_nothing_there_the_scripted_model_answers_and_says_that_it_is_scripted(tmp_path: Path) -> None:
    said = typed(tmp_path, "setup", "--no-local", "--non-interactive")

    assert said.code == 0
    assert said.out == "The default model is now demo/scripted. `hermes` starts a chat.\n"
    assert "This model is scripted" in said.err


def test_a_typed_key_is_tried_kept_privately_and_never_shown(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        typing = f"2\nopenai\n{KEY}\n"
        said = typed(tmp_path, "setup", "--no-local", stdin=typing, OPENAI_BASE_URL=server.url)

    assert said.code == 0
    assert (tmp_path / ".env").read_text() == f"OPENAI_API_KEY={KEY}\n"
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    assert KEY not in said.out + said.err


def test_another_server_is_taken_by_its_address(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=())) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"3\n{server.url}/\nsome/model\n")

    assert said.code == 0
    text = (tmp_path / "config.yaml").read_text()
    assert text == f"model:\n  default: custom/some/model\n  base_url: {server.url}\n"


def test_a_server_that_wants_a_key_is_asked_with_one(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"3\n{server.url}\nsome/model\n{KEY}\n")

    assert said.out.endswith("The default model is now custom/some/model. `hermes` starts a chat.\n")
    assert (tmp_path / ".env").read_text() == f"CUSTOM_API_KEY={KEY}\n"
    assert "Key of this server" in said.err
    assert KEY not in said.out + said.err


@pytest.mark.parametrize("key", ["", "wrong"])
def test_what_was_seen_not_to_answer_is_not_said_to(tmp_path: Path, key: str) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"3\n{server.url}\nsome/model\n{key}\ny\n")

    assert said.out.endswith(
        "Saved custom/some/model, but it did not answer. Check its address and key, or run `hermes setup` again.\n"
    )
    assert "The default model is now" not in said.out


def test_a_model_that_fails_can_be_kept_all_the_same(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Status(401)] * 3, keys=())) as server:
        variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        said = typed(tmp_path, "setup", "--no-local", stdin="1\nn\n1\ny\n", **variables)

    assert said.code == 0
    assert "default: openai/gpt-5.2" in (tmp_path / "config.yaml").read_text()


def test_a_wrong_config_file_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("modle: 1\n")

    with pytest.raises(ConfigError, match="unknown setting"):
        typed(tmp_path, "setup", "--no-local", "--non-interactive")


def test_without_a_terminal_it_says_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(HermesError, match=r"no terminal.*--non-interactive.*hermes model set"):
        typed(tmp_path, "setup", "--no-local")
