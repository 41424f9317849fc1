"""The API and webhooks beside a gateway are loaded and listen when the settings want them."""

from pathlib import Path

import pytest

from hermes_agent.app.opening import Options, open_system
from hermes_agent.cli.gateway.serving import Sign
from hermes_agent.cli.gateway.side_servers import SideServers
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.state import read_state
from hermes_agent.host.systemd import Supervisor
from tests.app.place import settle_home

API = "api: {enabled: true, port: 0}\n"


async def test_nothing_listens_before_it_is_wanted(tmp_path: Path):
    async with open_system(settle_home(tmp_path, "http://127.0.0.1:9"), Options()) as runtime:
        beside = SideServers(runtime)
        beside.check(runtime.settings, runtime.secrets.get)
        await beside.follow(runtime.settings)
        assert beside.url == ""
        await beside.close()


async def test_the_api_listens_once_it_has_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    home = settle_home(tmp_path, "http://127.0.0.1:9", API)
    async with open_system(home, Options()) as runtime:
        beside = SideServers(runtime)
        with pytest.raises(ConfigError, match="API_SERVER_KEY"):
            beside.check(runtime.settings, runtime.secrets.get)
        runtime.secrets.set("API_SERVER_KEY", "0123456789abcdef")
        await beside.follow(runtime.settings)

        assert beside.addresses == (f"The API answers at {beside.url}/v1",)
        assert capsys.readouterr().out == f"{beside.addresses[0]}\n"
        sign = Sign(home=home, started=1.0, supervisor=Supervisor({}), beside=beside)
        sign.write()
        assert (state := read_state(home)) is not None
        assert state.beside == beside.addresses

        await beside.close()
        assert beside.addresses == ()
