from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core.plain_characters import plainer


def test_typographic_quotes_dashes_and_spaces_become_plain_ones():
    assert plainer("\u201chi\u201d \u2013 it\u2019s\u00a0ok") == '"hi" - it\'s ok'


@given(st.text())
def test_positions_stay_where_they_are(text: str):
    assert len(plainer(text)) == len(text)
