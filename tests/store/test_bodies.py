"""Any value as JSON text and back."""

import pytest

from hermes_agent.store.transaction import plain, storable, written


@pytest.mark.parametrize("value", ["a\ud800b", {"a": ["\udfff", 1]}, "\x00", "ü", [None, True, 1.5, 2**60]])
def test_what_is_written_reads_the_same(value: object):
    assert plain(written(value)) == value


def test_a_written_body_has_no_character_that_a_database_refuses():
    body = written(["\x00", "\ud800"])

    assert body.encode("utf-8").count(0) == 0


def test_storable_text_has_no_nul_and_no_surrogate():
    assert storable("a\0b\ud800c") == "a\ufffdb?c"
