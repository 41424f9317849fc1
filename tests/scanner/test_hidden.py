"""Invisible characters are shown to a person as what they are."""

from hermes_agent.scanner.hidden import shown


def test_invisible_characters_are_written_out():
    assert shown("a\u200bb\u202ec\U000e0041") == "a\\u{200b}b\\u{202e}c\\u{e0041}"


def test_a_visible_text_stays_as_it_is():
    assert shown("naïve 日本 🎉") == "naïve 日本 🎉"
