"""The failures of a channel say what may be done about them."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.core.section import estimate_tokens
from hermes_agent.gateway.channel import LONG, Abilities, Kind, NotNow, OutcomeUnknown
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.host.late import late


def test_a_platform_may_say_when_to_come_back():
    assert NotNow("busy", retry_after=3.0).retry_after == 3.0
    assert NotNow("busy").retry_after is None


def test_a_failure_is_a_sentence_for_a_person():
    assert isinstance(OutcomeUnknown("The answer was lost."), HermesError)


@pytest.mark.parametrize("name", sorted(CHANNELS))
def test_what_the_model_is_told_of_a_platform_follows_from_its_facts(name: str):
    kind: Kind = late(CHANNELS[name])
    told, can = "; ".join(kind.platform.facts), kind.abilities

    assert kind.platform.title == kind.title
    assert (f"{can.longest_message:,} " in told) is (can.longest_message < LONG)
    assert "Markdown" in told
    assert ("buttons" in told) is (can.buttons > 0)
    assert (f"{can.largest_file // 1_000_000:,} MB" in told) is (can.largest_file > 0)
    assert estimate_tokens(told) <= 40


def test_a_platform_that_takes_no_files_and_has_no_buttons_is_told_so():
    kind = replace(late(CHANNELS["email"]), abilities=Abilities(longest_message=100))

    assert kind.platform.facts[-2:] == ("answers to questions are written", "no files go out")
