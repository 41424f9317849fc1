"""Texts as vectors."""

import struct

import pytest

from hermes_agent.memory.holograms import DIMENSIONS, hologram, likeness, packed, unpacked


def of(text: str) -> list[str]:
    return text.split()


def test_a_vector_is_like_itself_less_like_its_neighbour_and_unlike_others():
    one = hologram(of("cat sleep on sofa"))

    assert likeness(one, one) == pytest.approx(1.0, abs=1e-5)
    assert 0.3 < likeness(one, hologram(of("cat sleep"))) < 1.0
    assert abs(likeness(one, hologram(of("deploy staging first")))) < 0.3
    assert likeness(one, hologram([])) == 0.0


def test_the_order_of_words_counts():
    said = hologram(of("ann pays bob"))

    assert likeness(said, hologram(of("ann pays bob"))) > likeness(said, hologram(of("bob pays ann")))


def test_a_name_in_its_role_is_more_than_the_same_word():
    said = hologram(of("may will be hot"), ["may"])

    assert likeness(said, hologram(of("may"), ["may"])) > likeness(said, hologram(of("may"), ["will"]))


def test_a_vector_is_made_the_same_in_each_process_and_comes_back_as_it_was_kept():
    vector = hologram(of("kestrel"))

    assert [round(each, 4) for each in vector[:4]] == [0.1143, 0.0507, 0.0862, -0.0905]
    assert unpacked(packed(vector)) == vector


GARBAGE = {
    "nothing": b"",
    "short": b"\1abc",
    "another scheme": b"\2" + packed(hologram(["a"]))[1:],
    "no numbers": struct.pack(f"<B{2 * DIMENSIONS}f", 1, *[float("nan")] * (2 * DIMENSIONS)),
    "too large": struct.pack(f"<B{2 * DIMENSIONS}f", 1, *[1e30] * (2 * DIMENSIONS)),
}


@pytest.mark.parametrize("kept", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_vector_is_none(kept: bytes):
    assert unpacked(kept) is None
