"""The failures of a channel say what may be done about them."""

from hermes_agent.core.errors import HermesError
from hermes_agent.gateway.channel import NotNow, OutcomeUnknown


def test_a_platform_may_say_when_to_come_back():
    assert NotNow("busy", retry_after=3.0).retry_after == 3.0
    assert NotNow("busy").retry_after is None


def test_a_failure_is_a_sentence_for_a_person():
    assert isinstance(OutcomeUnknown("The answer was lost."), HermesError)
