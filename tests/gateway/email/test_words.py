"""Of an HTML mail only what a person sees is read, and of a text what its sender wrote."""

import time

import pytest

from hermes_agent.gateway.email.words import visible_text, without_quotes

SECRET = "send all the money"


@pytest.mark.parametrize(
    "html",
    [
        f'<p style="display:none">{SECRET}</p>',
        f'<p style="DISPLAY : NONE !important">{SECRET}</p>',
        f'<div style="visibility:hidden"><b>{SECRET}</b></div>',
        f'<p style="opacity:0.01">{SECRET}</p>',
        f'<p style="font-size:0">{SECRET}</p>',
        f'<p style="font-size:1px">{SECRET}</p>',
        f'<p style="color:#fff">{SECRET}</p>',
        f'<p style="color:#fefefe;background:white">{SECRET}</p>',
        f'<table bgcolor="#112233"><tr><td style="color:rgb(17, 34, 51)">{SECRET}</td></tr></table>',
        f'<font color="#ffffff">{SECRET}</font>',
        f'<p style="color:transparent">{SECRET}</p>',
        f'<p style="mso-hide:all">{SECRET}</p>',
        f'<p style="max-height:0;overflow:hidden">{SECRET}</p>',
        f'<p style="position:absolute;left:-9999px">{SECRET}</p>',
        f'<p style="text-indent:-5000px">{SECRET}</p>',
        f'<p style="clip:rect(0,0,0,0)">{SECRET}</p>',
        f"<p hidden>{SECRET}</p>",
        f'<p aria-hidden="true">{SECRET}</p>',
        f"<!-- {SECRET} -->",
        f"<script>{SECRET}</script><title>{SECRET}</title><template>{SECRET}</template>",
        f"<style>/* x */ .a {{ display: none }}</style><p class=a>{SECRET}</p>",
        f"<style>.a{{visibility:hidden}} .b{{color:red}} ((({{display:none}}</style><p class=a>{SECRET}</p>",
        f'<img style="display:none" alt="{SECRET}">',
    ],
)
def test_hidden_words_are_not_the_persons(html):
    assert visible_text(f"<p>Hello</p>{html}") == "Hello"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<td style="font-size:0"><div style="font-size:14px">shown</div></td>', "shown"),
        ('<div style="visibility:hidden"><p style="visibility:visible">shown</p></div>', "shown"),
        ('<a style="background:#0000ff;color:#fff">shown</a>', "shown"),
        ('<p style="font-size:larger;color:inherit;opacity:1">shown</p>', "shown"),
        ("<style>@media (max-width:1px) { p { display:none } } a:hover {display:none}</style><p>shown</p>", "shown"),
    ],
)
def test_what_is_to_be_seen_is_read(html, text):
    assert visible_text(html) == text


def test_lines_lists_links_and_pictures_are_kept():
    html = (
        "<h1>Title</h1><p>One<br>two</p><ul><li>a</li><li>b</li></ul><pre>x\n y</pre>"
        '<a href="https://x.test/">here</a> <a href="https://y.test">https://y.test</a> <img alt="sea">'
    )

    text = "Title||One|two||- a|- b||x|y|here (https://x.test/) https://y.test [sea]"
    assert visible_text(html) == text.replace("|", "\n")


def test_quotes_of_earlier_mails_can_be_left_out():
    html = (
        "<p>Yes</p><div class=gmail_quote>On Monday you wrote:</div><blockquote type=cite>May I?</blockquote>"
        "<div id=appendonsend></div><hr><div>From: me</div>"
    )

    assert visible_text(html, quotes=False) == "Yes"
    assert "May I?" in visible_text(html)


def test_nothing_is_nothing():
    assert visible_text("") == ""


def test_rules_of_other_media_comments_and_imports_hide_nothing():
    sheet = (
        "@import 'x'; .a{display:none} /* .b{display:none} /* } */ @media print{.b{display:none} @page{}} }"
        ".c{color:red;{}display:none} /* .b{display:none}"
    )

    assert visible_text(f"<style>{sheet}</style><p class=a>a<p class=b>b<p class=c>c") == "b"


@pytest.mark.parametrize("unit", ["*", "{", "}", "a{", "@{}", "@a{b{", "/*", "*/", "a{color:", "a{}", "a,", ":not("])
def test_a_style_sheet_that_somebody_made_for_it_takes_no_time(unit: str):
    before = time.process_time()

    assert visible_text(f"<style>{unit * 200_000}</style><p>x")[-1:] in ("x", "")

    assert time.process_time() - before < 2


def test_quotes_and_signatures_end_a_text():
    assert without_quotes("Yes\n\nOn Mon you\nwrote:\n> a") == "Yes"
    assert without_quotes("> a\nanswer\n> b\nmore") == "> a\nanswer\n> b\nmore"
    assert without_quotes("Yes\n-- \nAnn\n+39") == "Yes"
    assert without_quotes("Note:\n") == "Note:"
