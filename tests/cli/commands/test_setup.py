"""`hermes setup`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.shell import program, typed

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


def test_a_key_that_is_refused_is_a_failure_and_no_scripted_model_takes_its_place(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=("another",))) as server:
        said = typed(
            tmp_path, "setup", "--no-local", "--non-interactive", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url
        )

    assert (said.code, said.out) == (5, "")
    assert "openai/gpt-5.2 at 127.0.0.1" in said.err
    assert "Correct the key or start the server, then run `hermes setup` again" in said.err
    assert not (tmp_path / "config.yaml").exists()
    assert KEY not in said.out + said.err


def test_with_nothing_there_the_scripted_model_answers_and_says_that_it_is_scripted(tmp_path: Path) -> None:
    said = typed(tmp_path, "setup", "--no-local", "--non-interactive")

    assert said.code == 0
    assert said.out == "The default model is now demo/scripted. `hermes` starts a chat.\n"
    assert "This model is scripted" in said.err


def test_a_typed_key_is_tried_kept_privately_and_never_shown(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        typing = f"1\nopenai\n{KEY}\n"
        said = typed(tmp_path, "setup", "--no-local", stdin=typing, OPENAI_BASE_URL=server.url)

    assert said.code == 0
    assert (tmp_path / ".env").read_text() == f"OPENAI_API_KEY={KEY}\n"
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    assert KEY not in said.out + said.err


def test_another_server_is_taken_by_its_address(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=())) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"2\n{server.url}/\nsome/model\n")

    assert said.code == 0
    text = (tmp_path / "config.yaml").read_text()
    assert text == f"model:\n  default: custom/some/model\n  base_url: {server.url}\n"


def test_a_server_that_wants_a_key_is_asked_with_one(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"2\n{server.url}\n{KEY}\nsome/model\n")

    assert said.out.endswith("The default model is now custom/some/model. `hermes` starts a chat.\n")
    assert (tmp_path / ".env").read_text() == f"CUSTOM_API_KEY={KEY}\n"
    assert "Key of this server" in said.err
    assert KEY not in said.out + said.err


@pytest.mark.parametrize("key", ["", "wrong\n"])
def test_what_was_seen_not_to_answer_is_not_said_to(tmp_path: Path, key: str) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"2\n{server.url}\n{key}\nsome/model\n\ny\n")

    assert said.code == 5
    assert said.out.endswith(
        "Saved custom/some/model, but it did not answer. Check its address and key, or run `hermes setup` again.\n"
    )
    assert "The default model is now" not in said.out


def test_a_refused_key_of_a_server_is_asked_for_again(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,), models=("m",))) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"2\n{server.url}\nwrong\n{KEY}\n")

    assert "It wants a key (401)." in said.err
    assert "It refused that key (401)." in said.err
    assert said.out.startswith("The default model is now custom/m.")


def test_what_the_log_is_for_is_not_said_to_the_person(tmp_path: Path) -> None:
    variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    said = program("setup", "--no-local", "--non-interactive", home=tmp_path, variables=variables)

    assert said.code == 5
    assert "could not be reached" in said.err
    assert "for test: Unreachable" not in said.err
    assert "for test: Unreachable" in (tmp_path / "logs/hermes.log").read_text()


def test_a_model_that_fails_can_be_kept_all_the_same(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Status(401)] * 3, keys=())) as server:
        variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        said = typed(tmp_path, "setup", "--no-local", stdin="1\n\nn\n1\n\ny\n", **variables)

    assert said.code == 5
    assert "default: openai/gpt-5.2" in (tmp_path / "config.yaml").read_text()


def test_a_wrong_config_file_is_told_first(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("modle: 1\n")

    with pytest.raises(ConfigError, match="unknown setting"):
        typed(tmp_path, "setup", "--no-local", "--non-interactive")


def test_without_a_terminal_it_says_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(HermesError, match=r"no terminal.*--non-interactive.*hermes model set"):
        typed(tmp_path, "setup", "--no-local")


def test_a_key_in_the_environment_comes_before_a_configured_scripted_model(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model:\n  default: demo/scripted\n")
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        said = typed(tmp_path, "setup", "--no-local", "--non-interactive", **variables)

    assert said.out.startswith("The default model is now openai/gpt-5.2.")


def test_a_server_of_one_model_is_taken_by_host_and_port_alone(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(), models=("local-model",))) as server:
        host = server.url.removeprefix("http://").removesuffix("/v1")
        said = typed(tmp_path, "setup", "--no-local", stdin=f"2\n{host}\n")

    assert "It serves local-model." in said.err
    assert said.out.startswith("The default model is now custom/local-model.")


def test_the_models_of_a_server_are_offered_by_number(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(), models=("one", "two"))) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"2\n{server.url}\n2\n")

    assert said.out.startswith("The default model is now custom/two.")


def test_an_address_where_nobody_answers_is_asked_again(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(), models=("one",))) as server:
        said = typed(tmp_path, "setup", "--no-local", stdin=f"2\n127.0.0.1:9\n2\n{server.url}\n")

    assert "http://127.0.0.1:9/v1 could not be reached" in said.err
    assert "Is it running, and is this the address?" in said.err
    assert said.code == 0


def test_a_wrong_number_and_a_wrong_vendor_are_asked_again(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,))) as server:
        typing = f"nine\n9\n1\nfoo\nopenai\n{KEY}\n"
        said = typed(tmp_path, "setup", "--no-local", stdin=typing, OPENAI_BASE_URL=server.url)

    assert "There is no `nine` in the list." in said.err
    assert "There is no `foo` in the list." in said.err
    assert said.code == 0


@pytest.mark.parametrize("lines", range(5))
def test_setup_is_left_at_each_question_and_taken_up_again(tmp_path: Path, lines: int) -> None:
    with serving_in_thread(openai_model([Say("Hello.")], keys=(KEY,), models=("one", "two"))) as server:
        typing = ["2", server.url, KEY, "two"]
        given = "".join(f"{line}\n" for line in typing[:lines])
        if lines < len(typing):
            with pytest.raises(HermesError):
                typed(tmp_path, "setup", "--no-local", stdin=given)
            assert not (tmp_path / "config.yaml").exists()
            assert not (tmp_path / ".env").exists()
            again = ["2", "" if lines > 1 else server.url, KEY, "two"]
            given = "".join(f"{line}\n" for line in again)
        said = typed(tmp_path, "setup", "--no-local", stdin=given)

    assert said.out.startswith("The default model is now custom/two.")
    assert not list((tmp_path / "cache").glob("setup*"))
    assert KEY not in said.out + said.err
