"""Two homes of one person and one token: one of them listens, and the other says who does."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.gateway.channel import Kind
from hermes_agent.gateway.channels import CHANNELS
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import settle_home
from tests.gateway.harness import eventually, harness


def home_of(folder: Path, kind: Kind, url: str, address: str) -> Home:
    """A home with that channel and its token."""
    home = Home(root=folder, base=folder)
    settle_home(home.root, url)
    options = "".join(f"\n        {name}: {address}" for name in kind.account)
    with home.config_file.open("a") as file:
        file.write(f"gateway:\n  channels:\n    {kind.name}:\n      enabled: true\n")
        file.write(f"      options:{options}\n" if options else "")
    home.env_file.write_text(f"{kind.secrets[0]}=the-same-everywhere\n")
    home.env_file.chmod(0o600)
    return home


@pytest.mark.parametrize("name", CHANNELS)
async def test_a_second_home_with_a_copied_token_waits_and_says_who_listens(tmp_path: Path, name: str):
    """Whatever the channel: two homes know nothing of each other's databases."""
    kind: Kind = late(CHANNELS[name])
    kind = replace(kind, make=FakePlatform(kind.abilities, name=name).made)
    async with serving(openai_model([], keys=())) as model:
        homes = [home_of(tmp_path / each, kind, model.url, "a@example.org") for each in ("one", "two", "three")]
        async with open_gateway(homes[0], {name: kind}) as first:
            await eventually(lambda: first.known[name].state == "listening")
            async with open_gateway(homes[1], {name: kind}) as second:
                await eventually(lambda: second.known[name].state == "waiting")
                ailment = second.known[name].ailment
        async with open_gateway(homes[2], {name: kind}) as third:
            await eventually(lambda: third.known[name].state == "listening")

    assert ailment.startswith("Another home on this machine listens with the same token: this process, the home /")
    assert ailment.endswith(" Give each home one of its own.")


async def test_accounts_of_one_password_are_not_taken_for_each_other(tmp_path: Path):
    kind: Kind = late(CHANNELS["email"])
    kind = replace(kind, make=FakePlatform(kind.abilities, name="email").made)
    async with serving(openai_model([], keys=())) as model:
        homes = [home_of(tmp_path / each, kind, model.url, f"{each}@example.org") for each in ("one", "two")]
        async with open_gateway(homes[0], {"email": kind}) as first, open_gateway(homes[1], {"email": kind}) as second:
            for gateway in (first, second):
                await eventually(lambda gateway=gateway: gateway.known["email"].state == "listening")


async def test_where_nobody_can_see_other_homes_a_channel_listens_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    async with harness(tmp_path, [Say("Hello.")]) as here:
        assert await here.ask("Hi") == "Hello."
