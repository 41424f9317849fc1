"""Skills that propose a job: listed with their slots, filled in, and refused where nobody known wrote them."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from tests.cli.shell import typed
from tests.skills.shelf import put

FIELDS = """metadata:
  hermes:
    parameters:
      - name: topic
      - name: when
        default: "08:00"
    blueprint:
      schedule: every day at {{when}}
      prompt: Sum up the news about {{topic}}.
"""


@pytest.fixture
def news(home: Path) -> Path:
    """A home whose owner has a skill that proposes a job, and one that proposes none."""
    put(home / "skills", "tea")
    put(home / "skills", "news", more=FIELDS)
    typed(home, "skills", "list")
    return home


def test_a_skill_proposes_a_job_whose_slots_are_filled_in(news: Path) -> None:
    typed(news, "learn", "adopt", "news")
    (before,) = json.loads(typed(news, "cron", "blueprints", "--json").out)
    made = json.loads(typed(news, "cron", "blueprint", "news", "topic=fast trains", "--json").out)

    assert (before["skill"], before["slots"], before["jobs"]) == ("news", ["topic", "when=08:00"], [])
    assert (made["name"], made["prompt"]) == ("news", "Sum up the news about fast trains.")
    assert " 08:00 " in made["next"][0]
    assert "[made: news]" in typed(news, "cron", "blueprints").out


def test_a_slot_without_a_value_an_unknown_skill_and_one_without_a_job_are_sentences(news: Path) -> None:
    typed(news, "learn", "adopt", "news")
    for words, said in (
        (["news"], "topic"),
        (["news", "topic=x", "when=noon"], "noon"),
        (["tea"], "proposes no job"),
        (["nws"], "no skill `nws`"),
    ):
        with pytest.raises(HermesError, match=said):
            typed(news, "cron", "blueprint", *words)


def test_a_skill_that_nobody_known_wrote_makes_no_job(news: Path) -> None:
    with pytest.raises(HermesError, match="learn adopt news"):
        typed(news, "cron", "blueprint", "news", "topic=x")

    assert json.loads(typed(news, "cron", "list", "--json").out) == []
