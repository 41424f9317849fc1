"""A change on top of another one."""

import pytest

from hermes_agent.skills.undoing import Conflict, rebased

BASE = b"".join(b"line %d\n" % number for number in range(12))


def test_what_nothing_else_changed_is_the_target_to_the_byte():
    assert rebased(b"\xff", b"\xff", b"\xfe") == b"\xfe"
    assert rebased(None, None, b"a") == b"a"


def test_two_changes_at_different_places_are_both_kept():
    current, target = (
        BASE.replace(b"line 11", b"mine"),
        BASE.replace(b"line 1\n", b"better\n").replace(b"line 5\n", b""),
    )
    joined = rebased(current, BASE, target)
    assert joined == target.replace(b"line 11", b"mine")


@pytest.mark.parametrize(
    ("current", "base", "target"),
    [
        (None, BASE, b"x"),
        (BASE, None, b"x"),
        (BASE + b"x", BASE, None),
        (b"\xff", b"a", b"b"),
        (BASE.replace(b"line 5", b"mine"), BASE, BASE.replace(b"line 5", b"theirs")),
    ],
)
def test_what_does_not_fit_is_a_conflict(current, base, target):
    with pytest.raises(Conflict):
        rebased(current, base, target)
