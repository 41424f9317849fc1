"""Which search service is asked."""

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.tools.settings import SearchSettings
from hermes_agent.tools.web.searching import Result, Unsearched, choose, made, rows_of


def test_rows_are_found_under_their_names():
    assert rows_of(b'{"a": {"b": [{"url": "x"}, 3]}}', "a", "b") == [{"url": "x"}]
    for body in (b"", b"[]", b'{"a": 1}', b'{"a": {"b": {}}}', b"\xff"):
        with pytest.raises(Unsearched):
            rows_of(body, "a", "b")


def test_a_row_without_an_address_is_left_out():
    rows = [{"url": "u", "title": " a\n b ", "text": None}, {"title": "x"}, {"url": ""}, {"url": 3}]

    assert made(rows, text="text") == [Result(title="a b", url="u")]


def keys(*names: str):
    return lambda name: "key" if name in names else ""


@pytest.mark.parametrize(
    ("settings", "held", "name", "address"),
    [
        (SearchSettings(), (), "ddgs", "https://html.duckduckgo.com"),
        (SearchSettings(), ("BRAVE_API_KEY", "EXA_API_KEY"), "brave", "https://api.search.brave.com"),
        (SearchSettings(url="http://127.0.0.1:8080/"), (), "searxng", "http://127.0.0.1:8080"),
        (SearchSettings(url="http://127.0.0.1:8080"), ("TAVILY_API_KEY",), "searxng", "http://127.0.0.1:8080"),
        (SearchSettings(backend="exa", url="http://proxy"), ("EXA_API_KEY",), "exa", "http://proxy"),
    ],
)
def test_the_settings_and_the_keys_choose(settings: SearchSettings, held: tuple[str, ...], name: str, address: str):
    chosen = choose(settings, keys(*held))

    assert (chosen.name, chosen.address) == (name, address)


@pytest.mark.parametrize(
    ("backend", "words"), [("tavily", "the key TAVILY_API_KEY"), ("searxng", r"its address .`web.search.url`")]
)
def test_what_a_service_lacks_is_said(backend: str, words: str):
    with pytest.raises(ToolError, match=f"by {backend} needs {words}"):
        choose(SearchSettings(backend=backend), keys())
