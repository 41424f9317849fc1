"""What a page says, in whatever bytes it came."""

import asyncio

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.tools.web.pages import Page
from hermes_agent.tools.web.reading import READ, decoded, parsed, read_apart, text_of
from tests.holds import longest_hold
from tests.tools.files.documents.test_documents import make_pdf

URL = "https://example.org/"


def page(body: bytes, media: str = "text/html", charset: str = "") -> Page:
    return Page(url=URL, media=media, charset=charset, body=body)


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("käse".encode(), ""),
        ("käse".encode("latin-1"), "iso-8859-1"),
        ("käse".encode("utf-16"), "utf-8"),
        ("käse".encode(), "no-such-charset"),
        ('<meta charset="windows-1252">käse'.encode("cp1252"), ""),
        (b"<meta http-equiv=x content='text/html; charset=shift_jis'>" + "käse".encode(), "utf-8"),
    ],
)
def test_the_charset_is_found(body: bytes, charset: str):
    assert decoded(page(body, charset=charset)).endswith("käse")


def test_bytes_that_fit_no_charset_are_shown_as_such():
    assert decoded(page(b"k\xe4se")) == "k\ufffdse"


def test_html_has_its_title_and_address_on_top():
    assert text_of(page(b"<title>T</title><p>words")) == "# T\n\n<https://example.org/>\n\nwords"


def test_a_page_without_words_says_so():
    assert "may need a browser" in text_of(page(b"<script>render()</script>"))


def test_text_and_json_stand_as_they_are():
    assert text_of(page(b'{"a":  1}', "application/json")) == '<https://example.org/>\n\n{"a":  1}'


def test_a_pdf_is_read_whatever_it_is_called():
    for media in ("application/pdf", "text/plain"):
        assert "[page 1 of 1]\nHello" in text_of(page(make_pdf("Hello"), media))


def test_a_broken_pdf_is_an_answer():
    with pytest.raises(ToolError, match="PDF that cannot be read"):
        text_of(page(b"%PDF-1.4 nothing"))


async def test_a_page_is_read_the_same_in_a_process_of_its_own():
    broken, whole = page(b"%PDF-1.4 nothing"), page("<title>K\u00e4se</title>&#xd83d;".encode(), charset="utf-8")

    assert await read_apart(whole) == text_of(whole)
    with pytest.raises(ToolError, match="PDF that cannot be read"):
        await read_apart(broken)

    assert parsed(b"x", URL, "text/plain", "")[:1] == READ
    assert parsed(broken.body, URL, "", "")[:1] != READ


@pytest.mark.parametrize(
    "html",
    ["<div>" * 200_000, "<p>" + "".join(f"<b a{n}>" for n in range(450)) + "</p>" + "<p>x</p>" * 100_000],
    ids=["deep", "each paragraph opens 450 elements again"],
)
async def test_a_page_that_takes_all_time_or_memory_is_an_answer(html: str):
    held = asyncio.create_task(longest_hold())

    with pytest.raises(ToolError, match="cannot be read"):
        await read_apart(page(html.encode()), work=1)

    held.cancel()
    assert await held < 0.5
