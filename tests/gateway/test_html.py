"""Markdown as HTML shows nothing that it should not, and takes no time."""

from time import process_time

import pytest

from hermes_agent.gateway.html import html


def test_markdown_becomes_html_without_tags_of_its_own_and_pictures_of_others():
    made = html("**a** <script>x</script> ![p](https://x.test/p.png)\n\n| a |\n|---|\n| b |")

    assert "<strong>a</strong>" in made
    assert "<table>" in made
    assert "<script>" not in made
    assert "<img" not in made


@pytest.mark.parametrize(
    "unit", ["*", "_", "[", "](", "[a](", "`", "<", "&", "> ", "- ", "|-|\n", "![", "***a ", "\\", "~"]
)
def test_a_text_that_somebody_made_for_it_takes_no_time(unit: str):
    began = process_time()

    html((unit * 20_000)[:20_000])

    assert process_time() - began < 3
