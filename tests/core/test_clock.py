"""Times as people read them."""

import pytest

from hermes_agent.core.clock import ago


@pytest.mark.parametrize(
    ("seconds", "said"), [(-5, "now"), (59, "now"), (300, "5 min"), (3 * 3600, "3 h"), (12 * 86400, "12 d")]
)
def test_how_long_ago_is_said_in_one_unit(seconds: float, said: str):
    assert ago(seconds) == said
