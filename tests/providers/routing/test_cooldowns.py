"""What a rest covers, and cool-downs in memory."""

import pytest

from hermes_agent.providers.routing.chain import BriefCoolDowns
from hermes_agent.store.cooldowns import CoolDown

REST = CoolDown(provider="a", credential="K1", model="m", until=10.0, reason="RateLimited")


@pytest.mark.parametrize(
    ("credential", "model", "covered"),
    [
        ("K1", "m", [("K1", "m")]),
        ("K1", "", [("K1", "m"), ("K1", "n")]),
        ("", "m", [("K1", "m"), ("K2", "m")]),
    ],
)
def test_an_empty_name_means_every_one(credential, model, covered):
    rest = CoolDown(provider="a", credential=credential, model=model, until=1.0, reason="x")
    places = [(one, each) for one in ("K1", "K2") for each in ("m", "n")]
    assert [place for place in places if rest.covers("a", *place)] == covered
    assert not any(rest.covers("b", *place) for place in places)


async def test_what_rests_is_there_until_it_ends_and_the_last_word_counts():
    kept = BriefCoolDowns()
    await kept.rest([REST])
    assert await kept.resting(9.0) == [REST]
    assert await kept.resting(10.0) == []
    later = CoolDown(provider="a", credential="K1", model="m", until=20.0, reason="OutOfCredit")
    await kept.rest([later])
    assert await kept.resting(10.0) == [later]
