"""Filters of a route: what they let through, and that none of them holds anything still."""

import asyncio

import pytest

from hermes_agent.api.webhooks.incoming import passes
from hermes_agent.host.inbound.message import Refused
from tests.holds import longest_hold

PAYLOAD = {"a": {"b": [{"c": "x"}, 7]}, "yes": True, "ref": "refs/heads/release-1.2", "long": "a" * 3000 + "!"}


@pytest.mark.parametrize(
    ("filters", "passed"),
    [
        ({}, True),
        ({"a.b.0.c": "x|y"}, True),
        ({"a.b.0.c": "x", "yes": "false"}, False),
        ({"gone": ".+"}, False),
        ({"gone": ".*", "ref": "refs/heads/.*"}, True),
        ({"ref": r"refs/.*/release-\d+\.\d+"}, True),
        ({"ref": r"refs/.*/release-\d+\.\d+", "yes": "(fa|tr).+"}, True),
        ({"ref": r"refs/.*/release-\d+"}, False),
        ({"long": "a{1000}"}, True),
    ],
)
async def test_all_filters_must_match_as_a_whole(filters: dict[str, str], passed: bool):
    assert await passes(PAYLOAD, filters) is passed


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+b", "a*a*a*a*a*a*b"])
async def test_a_filter_that_takes_for_ever_is_ended_and_holds_nothing_still(pattern: str):
    held = asyncio.create_task(longest_hold())

    with pytest.raises(Refused) as refused:
        await passes(PAYLOAD, {"long": pattern})

    held.cancel()
    assert (refused.value.status, refused.value.code) == (503, "slow_filter")
    assert await held < 0.5


async def test_a_filter_that_is_not_asked_in_time_lets_nothing_through():
    with pytest.raises(Refused, match="fewer repeats"):
        await passes(PAYLOAD, {"ref": ".*.*"}, patience=0.0)
