"""Rules: a hint that is missing spares the search, and no pattern takes long."""

import time

import pytest

from hermes_agent.scanner.rules import RULES, Rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.what)
def test_a_rule_without_its_hints_in_the_text_is_not_tried(rule: Rule):
    assert list(rule.matches("@@@", "@@@")) == [] or "@" in rule.hints
    assert all(hint == hint.lower() for hint in rule.hints)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.what)
def test_no_pattern_takes_long_on_a_text_made_against_it(rule: Rule):
    hints = " ".join(rule.hints)
    text = f"{hints} " * 300 + "ignore all the " * 300 + "curl " * 300 + "a" * 5_000

    began = time.process_time()
    list(rule.matches(text, text.lower()))

    assert time.process_time() - began < 1.0
