import json

import pytest

from hermes_agent.gateway.matrix.place import INVITATIONS, UNREAD, Place


def test_a_place_is_read_as_it_was_written():
    place = Place(since="s1", told=["!2"])
    place.invite("!1", "@x", direct=True)
    place.strangers["!3"] = ("@y", 5.0)
    place.wait("$1", "!2", 7.0)

    assert Place.read(place.written()) == place


def test_one_that_an_earlier_version_wrote_is_read():
    written = json.dumps({"since": "s1", "invitations": {"!1": "@x"}, "told": ["!2"]})

    assert Place.read(written) == Place(since="s1", invitations={"!1": ("@x", False)}, told=["!2"])


@pytest.mark.parametrize("written", ["", "[]", "x", '{"since": 1, "told": 5, "unread": [], "invitations": {"!1": 5}}'])
def test_what_is_none_has_not_begun(written):
    assert Place.read(written) == Place()


def test_what_anybody_may_add_to_is_bounded():
    place = Place()
    for number in range(INVITATIONS + 5):
        place.invite(f"!{number}", "@x", direct=False)
        place.wait(f"${number}", "!1", 0.0)

    assert next(iter(place.invitations)) == "!5"
    assert (len(place.invitations), len(place.unread)) == (INVITATIONS, UNREAD)
