"""Pages are fetched within limits; every hop is checked."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.host.http import Http
from hermes_agent.tools.web.addresses import Addresses
from hermes_agent.tools.web.pages import Pages
from tests.tools.web.sites import Site, site


@pytest.fixture
async def here() -> AsyncIterator[Site]:
    async with site() as found:
        yield found


@pytest.fixture
async def pages(here: Site) -> AsyncIterator[Pages]:
    http = Http()
    yield Pages(http, Addresses(private=(here.host,)), seconds=5, most=1 << 20)
    await http.close()


async def test_a_page_comes_with_its_type(pages: Pages, here: Site):
    page = await pages.fetch(f"http://{here.host}/")

    assert (page.media, page.charset, page.body.decode()) == ("text/html", "utf-8", "<p>Grüße")
    assert here.asked[0].headers["host"] == here.host


async def test_a_redirect_is_followed(pages: Pages, here: Site):
    here.moved = "/?again"

    assert (await pages.fetch(f"http://{here.host}/moved")).url == f"http://{here.host}/?again"


@pytest.mark.parametrize(
    "where", ["http://169.254.169.254/", "http://localhost:{port}/", "//127.1:{port}/", "file:///etc"]
)
async def test_a_redirect_to_where_none_may_lead_is_refused(pages: Pages, here: Site, where: str):
    here.moved = where.format(port=here.server.port)

    with pytest.raises((Refused, ToolError), match=r"was refused|only http"):
        await pages.fetch(f"http://{here.host}/moved")
    assert len(here.asked) == 1


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/loop", "leads on and on"),
        ("/png", "is image/png, which cannot be shown"),
        ("/big", r"more than 1 MB .`web.max_mb`"),
        ("/bomb", r"more than 1 MB"),
        ("/cut", "cannot be reached"),
        ("/none", "answered 404"),
    ],
)
async def test_what_cannot_be_read_is_an_answer(pages: Pages, here: Site, path: str, words: str):
    with pytest.raises(ToolError, match=words):
        await pages.fetch(f"http://{here.host}{path}")


async def test_a_site_that_does_not_answer_costs_the_limit_and_no_more(pages: Pages, here: Site):
    with pytest.raises(ToolError, match="did not answer within 0 s"):
        await pages.fetch(f"http://{here.host}/slow", seconds=0.2)


async def test_a_name_is_looked_up_once_so_that_it_cannot_change_its_mind(here: Site):
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    http = Http()
    name = f"rebind.example:{here.server.port}"
    pages = Pages(http, Addresses(private=(name,), resolve=resolve), seconds=5, most=1 << 20)
    page = await pages.fetch(f"http://{name}/")
    await http.close()

    assert (page.url, asked) == (f"http://{name}/", ["rebind.example"])
    assert here.asked[0].headers["host"] == name
