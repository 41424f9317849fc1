"""Commands see the person's environment without secrets, and wait for no terminal."""

from __future__ import annotations

import pytest

from hermes_agent.sandbox.environment import scrubbed


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "GITHUB_TOKEN",
        "HERMES_HOME",
        "SLACK_BOT_TOKEN",
        "my_secret",
        "TOKEN",
        "SENTRY_DSN",
    ],
)
def test_what_sounds_like_a_secret_is_not_passed_on(name: str) -> None:
    assert name not in scrubbed({name: "x"})
    assert scrubbed({name: "x"}, [name])[name] == "x"


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "PASSAGE"])
def test_what_only_looks_a_little_like_one_is(name: str) -> None:
    assert scrubbed({name: "x"})[name] == "x"


def test_pagers_and_prompts_are_switched_off() -> None:
    seen = scrubbed({"PAGER": "less", "TERM": "xterm"})

    assert (seen["PAGER"], seen["TERM"], seen["GIT_TERMINAL_PROMPT"]) == ("cat", "dumb", "0")
