"""Slack's markup is written without mentions and read without marks."""

import pytest

from hermes_agent.gateway.slack.mrkdwn import mrkdwn, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** and *italic* and ~~gone~~", "*bold* and _italic_ and ~gone~"),
        ("# A *title*\ntext", "*A title*\ntext"),
        ("- one\n- two", "• one\n• two"),
        ("[here](https://x.test/a|b)", "<https://x.test/a%7Cb|here>"),
        ("```python\na < b and **c**\n```", "```\na &lt; b and **c**\n```"),
        ("`a*b*c`", "`a*b*c`"),
        ("> quoted", "> quoted"),
        ("2 * 3 * 4 and a_b_c", "2 * 3 * 4 and a_b_c"),
        ("**[a](https://x.test)**", "*<https://x.test|a>*"),
        ("# see `code`", "*see `code`*"),
        ("\0000\0", "0"),
    ],
)
def test_markdown_is_shown(text, shown):
    assert mrkdwn(text) == shown


@pytest.mark.parametrize("text", ["<@U1>", "<!channel>", "<!here|x>", "<#C1>", "**<@U1>**", "`<@U1>`"])
def test_nobody_is_mentioned(text):
    assert "<" not in mrkdwn(text)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("<@U0> do it", "do it"),
        ("ask <@U1|ann> or <@U2>", "ask @ann or @U2"),
        ("<!here> and <!subteam^S1|@team> in <#C1|general>", "@here and @@team in #general"),
        (
            "<https://x.test|x.test> <https://y.test|why>",
            "https://x.test why (https://y.test)",
        ),
        ("a &lt;b&gt; &amp;amp;", "a <b> &amp;"),
    ],
)
def test_what_people_write_is_read(written, text):
    assert plain(written, "U0") == text
