"""Each refusal of Discord has a meaning."""

import pytest

from hermes_agent.gateway.channel import MessageGone, NeverHere
from hermes_agent.gateway.discord.rest import meaning
from hermes_agent.gateway.service import Answer


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"code": 10008, "message": "Unknown Message"}', MessageGone),
        (b'{"code": 10003, "message": "Unknown Channel"}', NeverHere),
        (b'{"code": 50013, "message": "Missing Permissions"}', NeverHere),
        (b"<html>", NeverHere),
        (b"[]", NeverHere),
    ],
)
def test_a_refusal_means(body, kind):
    assert isinstance(meaning(Answer(status=404, headers={}, body=body)), kind)


def test_a_refusal_is_told_in_discords_words():
    body = b'{"code": 50013, "message": "Missing Permissions"}'

    assert "403 Missing Permissions" in str(meaning(Answer(status=403, headers={}, body=body)))
