import pytest

from hermes_agent.gateway.channel import NeverHere
from hermes_agent.gateway.matrix.attachments import locked, unlocked


def test_a_file_is_what_it_was():
    content, keys = locked(b"content")

    assert content != b"content"
    assert unlocked(content, keys) == b"content"


@pytest.mark.parametrize("odd", [{}, {"iv": 5}, {"key": "x"}, {"hashes": {"sha256": "x"}}])
def test_a_file_with_another_key_is_refused(odd):
    content, keys = locked(b"content")

    with pytest.raises(NeverHere, match="cannot be decrypted"):
        unlocked(content, {**keys, **odd} if odd else {})


def test_a_file_with_other_bytes_is_refused():
    content, keys = locked(b"content")

    with pytest.raises(NeverHere, match="cannot be decrypted"):
        unlocked(content[:-1], keys)
