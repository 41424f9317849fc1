from hermes_agent.gateway.html import html


def test_markdown_becomes_html_without_tags_of_its_own_and_pictures_of_others():
    made = html("**a** <script>x</script> ![p](https://x.test/p.png)\n\n| a |\n|---|\n| b |")

    assert "<strong>a</strong>" in made
    assert "<table>" in made
    assert "<script>" not in made
    assert "<img" not in made
