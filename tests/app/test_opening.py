"""One system out of the parts."""

import pytest

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.settings import SERVED
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import ConfigError, DatabaseDamaged, HomeError
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, place, settle_home

MOST_TOKENS = 4_000
MOST_TOKENS_SMALL = 3_000


@pytest.mark.parametrize(
    ("toolsets", "offered"), [(("todo",), {"todo"}), ((), set()), (("files",), {"read_file", "write_file", "patch"})]
)
async def test_toolsets_narrow_what_is_offered(tmp_path, toolsets, offered):
    async with place(tmp_path, [Say("Hello.")], Options(toolsets=toolsets)) as here:
        await here.say("Hi")
        names = {tool.name for tool in here.server.asked[0].tools} - {"find_tools", "use_tool"}

        assert offered <= names
        assert "terminal" not in names
        assert bool(names) is bool(toolsets)


async def test_an_unknown_toolset_leaves_no_store_open(tmp_path):
    home = Home(root=tmp_path, base=tmp_path)
    with pytest.raises(ConfigError, match="There is no toolset `x`"):
        async with open_system(home, Options(toolsets=("x",))):
            pass


async def test_a_broken_config_uses_the_last_good_one_and_says_so(tmp_path):
    async with serving(openai_model(lambda heard: Say("Hello."), keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with another(home, server) as here:
            assert here.runtime.loaded.notice == ""
        home.config_file.write_text("model:\n  defualt: x/y\n")
        async with another(home, server) as here:
            assert "defualt" in here.runtime.loaded.notice
            assert "`default`" in here.runtime.loaded.notice or "default" in here.runtime.loaded.notice
            assert "last good settings" in here.runtime.loaded.notice
            assert (await here.say("Hi")).text == "Hello."


async def test_a_home_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(HomeError, match="cannot be used"):
        async with open_system(Home(root=tmp_path / "home", base=tmp_path)):
            pass


async def test_a_database_that_is_garbage_is_refused_and_kept(tmp_path):
    garbage = b"this is no database" * 1000
    (tmp_path / "hermes.db").write_bytes(garbage)
    with pytest.raises(DatabaseDamaged):
        async with open_system(Home(root=tmp_path, base=tmp_path)):
            pass
    assert (tmp_path / "hermes.db").read_bytes() == garbage


async def test_who_has_a_key_of_the_api_is_the_same_in_every_process_of_the_home(tmp_path):
    keys = "anna: {secret: A}, gast: {secret: G, standing: guest}, boss: {secret: B, standing: owner}"
    home = settle_home(tmp_path, "http://127.0.0.1:9", f"api: {{keys: {{{keys}}}}}\n")
    async with open_system(home, Options(queue=SERVED, own_only=False)) as runtime:  # As `hermes worker` does.
        found = {name: runtime.standings.of(f"api:{name}") for name in ("owner", "boss", "anna", "gast", "nobody")}

        assert found == {
            "owner": Standing.OWNER,
            "boss": Standing.OWNER,
            "anna": Standing.MEMBER,
            "gast": Standing.GUEST,
            "nobody": Standing.GUEST,
        }
        assert runtime.standings.of("webhook:owner") is Standing.GUEST
