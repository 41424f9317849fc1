"""Pages are fetched within limits; every hop is checked."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Sequence

import pytest

from hermes_agent.core.errors import BadArguments, Refused, ToolError
from hermes_agent.host.http import Http
from hermes_agent.tools.web.pages import Addresses, Pages, look_up, number_of, objection
from tests.tools.web.sites import Site, site

PUBLIC = "93.184.216.34"


def answering(*numbers: str) -> Addresses:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return numbers

    return Addresses(blocked=("evil.example", "*.ads.example"), private=("wiki.lan", "box.lan:8080"), resolve=resolve)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0x7f.0.0.0x1/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://0/",
        "http://0.0.0.0:22/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[0:0:0:0:0:ffff:a00:1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:1:1:1:1:80ff:fffe]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[fd00:ec2::254]/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://100.100.100.200/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/",
    ],
)
async def test_a_private_address_is_refused_in_every_form(url: str):
    with pytest.raises((Refused, BadArguments)):
        await Addresses().check(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/passwd", "only http:// and https://"),
        ("gopher://example.org/", "only http:// and https://"),
        ("example.org", "only http:// and https://"),
        ("http://example.org@127.0.0.1/", "names a user"),
        ("http://a:b@example.org/", "names a user"),
        ("http://127.0.0.1\\@example.org/", "backslash"),
        ("http://example.org/\r\nHost: x", "control character"),
        ("http:///path", "no host"),
        ("http://example.org:99999/", "ort"),
        ("http://example.org:0/", "port is 0"),
        ("http://[::1/", "nvalid"),
        (f"http://{'ä' * 70}.example/", "label"),
        ("", "only http:// and https://"),
    ],
)
async def test_what_is_no_web_address_is_told_why(url: str, words: str):
    with pytest.raises(BadArguments, match=words):
        await answering(PUBLIC).check(url)


async def test_a_public_site_is_reached_at_the_number_that_was_checked():
    target = await answering(PUBLIC).check("HTTPS://Example.ORG:8443/a?b=c#d")

    assert target.connect == f"https://{PUBLIC}:8443/a?b=c"
    assert (target.url, target.host, target.name) == (
        "https://example.org:8443/a?b=c",
        "example.org:8443",
        "example.org",
    )


async def test_a_name_with_one_private_number_among_others_is_refused():
    with pytest.raises(Refused, match=r"10.0.0.5 is in a private network"):
        await answering(PUBLIC, "10.0.0.5").check("http://rebinding.example/")


async def test_a_name_that_nobody_has_is_an_answer():
    with pytest.raises(ToolError, match=r"nowhere.example does not exist"):
        await answering().check("http://nowhere.example/")


@pytest.mark.parametrize("host", ["evil.example", "sub.evil.example", "EVIL.example.", "a.ads.example"])
async def test_a_blocked_site_is_refused_with_all_below_it(host: str):
    with pytest.raises(Refused, match=r"web.blocked"):
        await answering(PUBLIC).check(f"https://{host}/")


async def test_a_site_whose_name_only_ends_like_a_blocked_one_is_not():
    assert (await answering(PUBLIC).check("https://notevil.example/")).name == "notevil.example"


async def test_hosts_that_the_owner_named_may_be_private_and_nothing_else():
    assert (await answering("10.0.0.5").check("http://wiki.lan/")).connect == "http://10.0.0.5/"
    assert (await answering("127.0.0.1").check("http://box.lan:8080/")).connect == "http://127.0.0.1:8080/"
    for url in ("http://box.lan/", "http://other.lan/"):
        with pytest.raises(Refused):
            await answering("10.0.0.5").check(url)


async def test_not_even_those_may_lead_to_a_clouds_keys():
    for number in ("169.254.169.254", "fd00:ec2::254"):
        with pytest.raises(Refused, match="keeps its machine's keys"):
            await answering(number).check("http://wiki.lan/")


def test_public_addresses_of_both_kinds_are_fine():
    for number in (PUBLIC, "2606:2800:220:1:248:1893:25c8:1946", f"::ffff:{PUBLIC}", "64:ff9b::5db8:d822"):
        assert objection(ipaddress.ip_address(number)) == ""


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1"])
def test_a_number_is_known_in_every_form(host: str):
    assert str(number_of(host)) == "127.0.0.1"


async def test_a_name_is_asked_of_the_system():
    assert number_of("localhost") is None
    assert "127.0.0.1" in await look_up("localhost", 80)


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
