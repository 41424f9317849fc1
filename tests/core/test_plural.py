"""One of a thing is said as one."""

from hermes_agent.core.shown import plural


def test_a_figure_has_its_noun():
    assert plural(1, "message") == "1 message"
    assert plural(0, "message") == "0 messages"
    assert plural(1200, "entry", "entries") == "1,200 entries"
    assert plural(1, "entry", "entries") == "1 entry"
