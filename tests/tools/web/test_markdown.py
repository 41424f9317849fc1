"""Pages become Markdown: what a person would read, and nothing else."""

import pytest

from hermes_agent.tools.web.reading import to_markdown

URL = "https://example.org/docs/"


def body(html: str) -> str:
    return to_markdown(f"<html><body>{html}</body></html>", URL)[1]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>A  title</h1><p>One\n two.</p><p>Three</p>", "# A title\n\nOne two.\n\nThree"),
        ("<p>a <b>bold</b> and <em>soft</em> <code>x = 1</code></p>", "a **bold** and *soft* `x = 1`"),
        (
            '<p>see <a href="../b?c=d">the page</a>, <a href="#x">here</a></p>',
            "see [the page](https://example.org/b?c=d), here",
        ),
        ('<a href="javascript:alert(1)">run</a>', "run"),
        ("<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>", "- a\n- b\n  - c"),
        ("<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"),
        ("<pre><code>def f():\n    return  1\n</code></pre>", "```\ndef f():\n    return  1\n```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        (
            "<table><tr><th>a</th><th>b</th></tr><tr><td>1|2</td><td>3</td></tr></table>",
            "| a | b |\n|---|---|\n| 1\\|2 | 3 |",
        ),
        ("<table><tr><td><p>one</p></td><td><p>two</p></td></tr></table>", "one\n\ntwo"),
        ('<img src="/a.png" alt="a chart"><img src="b.png">', "![a chart](https://example.org/a.png)"),
        ("a<br>b<hr>c", "a\nb\n\n---\n\nc"),
        ("<script>x()</script><style>p{}</style><p hidden>no</p><p aria-hidden=true>no</p>yes<!-- no -->", "yes"),
        ("<nav>menu</nav><p>words</p><footer>legal</footer>", "words"),
        ("", ""),
    ],
)
def test_html_becomes_markdown(html: str, text: str):
    assert body(html) == text


def test_the_main_part_is_taken_where_it_is_most_of_the_page():
    assert body("<div>around</div><main><p>the words that matter</p></main>") == "the words that matter"
    assert "much more" in body(f"<article>teaser</article><p>{'much more words ' * 20}</p>")
    assert body("<article>one thing</article><article>two things</article>") == "one thing\n\ntwo things"


def test_the_title_stands_apart():
    assert to_markdown("<title> A\n page </title><body>x", URL) == ("A page", "x")


def test_a_page_nested_without_end_is_cut_and_no_crash():
    assert body("<div>" * 20_000 + "deep") == ""


@pytest.mark.parametrize("html", ["", "<", "\0", "<a href='http://[bad'>x</a>", "plain text", "<p>\ud800"])
def test_broken_pages_are_read_as_far_as_they_go(html: str):
    assert isinstance(to_markdown(html.encode("utf-8", "replace").decode(), URL)[1], str)
