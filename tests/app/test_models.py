"""Mixtures in whole processes; single models and their fallbacks are tested beside the chains."""

from dataclasses import replace

import pytest

from bench.random_session import differences
from hermes_agent.app.models import Models, StoredCoolDowns, route_of
from hermes_agent.app.opening import Options
from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import NoModel
from hermes_agent.core.events import Notice, Outcome, Replied
from hermes_agent.host.config import Loaded
from hermes_agent.host.http import Http
from hermes_agent.host.paths import Home
from hermes_agent.host.secrets import Secrets, open_secrets
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.providers.routing.chain import BriefCoolDowns, Use
from hermes_agent.providers.settings import CredentialSettings, ModelOverride, ModelSettings
from hermes_agent.providers.signin.token_refresh import AuthFile, SignedIn
from hermes_agent.store.cooldowns import CoolDown
from hermes_agent.store.database import open_store
from hermes_agent.store.usage import UsageRow
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, place, settle_home
from tests.app.replay.recorded import recorded, replayed

MOA = "moa:\n  council:\n    members: [custom/red, custom/blue]\n    aggregator: custom/all\n"
COUNCIL = Options(model="moa/council")


def council(heard):
    """Two that know something, and one that works and answers."""
    if heard.model in ("red", "blue"):
        return Say(f"I say {heard.model}.")
    opinions = " and ".join(each for each in ("red", "blue") if f"I say {each}." in str(heard.messages))
    return Call("todo", {"todos": []}) if heard.turn == 0 else Say(f"I heard {opinions or 'nobody'}.")


async def rows_of(here):
    return await here.runtime.store.usage.rows(here.record.id)


async def notices(here):
    return [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)]


async def test_a_mixture_answers_with_tools_and_each_call_has_its_row(tmp_path):
    async with place(tmp_path, council, COUNCIL, more=MOA) as here:
        ended = await here.say("Who wins?")

        assert ended.text == "I heard red and blue."
        rows = await rows_of(here)
        assert sorted((row.purpose, row.model) for row in rows) == [
            ("chat", "all"),
            ("chat", "all"),
            ("mixture", "blue"),
            ("mixture", "red"),
        ]
        assert len({row.run for row in rows}) == 1
        view = await here.runtime.hermes.view(here.record.id)
        assert "I say" not in str(view.messages)


async def test_a_member_that_fails_is_told(tmp_path):
    def script(heard):
        return Status(400) if heard.model == "red" else council(heard)

    async with place(tmp_path, script, COUNCIL, more=MOA) as here:
        assert (await here.say("Who wins?")).text == "I heard blue."
        assert any(text.startswith("custom/red had no opinion:") for text in await notices(here))


async def test_a_member_without_a_key_is_told(tmp_path):
    more = MOA.replace("custom/red", "anthropic/claude-haiku-4-5")
    async with place(tmp_path, council, COUNCIL, more=more) as here:
        assert (await here.say("Who wins?")).text == "I heard blue."
        assert any(text.startswith("anthropic/claude-haiku-4-5 had no opinion:") for text in await notices(here))


async def test_a_limit_holds_for_all_of_them_together(tmp_path):
    more = f"  price_input: 1000\n  price_output: 1000\n{MOA}budget:\n  run:\n    money: 0.01\n"
    async with place(tmp_path, council, COUNCIL, more=more) as here:
        ended = await here.say("Who wins?")

        assert ended.outcome is Outcome.LIMIT
        assert here.server.exchanges == []


async def test_a_replay_of_a_mixture_leaves_the_same_rows(tmp_path):
    async with recorded(tmp_path, council, more=MOA, model="moa/council") as here:
        await here.say("Who wins?")
        then = await here.log()
    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert differences(tmp_path) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("moa:\n  counsel:\n    members: [custom/red]\n", "There is no mixture `council`"),
        ("moa:\n  counsel:\n    members: [custom/red]\n", "Did you mean `counsel`?"),
        ("moa:\n  council:\n    aggregator: custom/all\n", "needs `members`"),
        ("moa:\n  council:\n    members: [custom/red]\n    aggregator: moa/council\n", "a single model"),
        ("", "There is no mixture `council`"),
    ],
)
async def test_a_mixture_that_is_none_is_told_with_its_setting(tmp_path, more, said):
    async with place(tmp_path, council, COUNCIL, more=more) as here:
        ended = await here.say("Who wins?")

        assert ended.outcome is Outcome.FAILED
        assert said in ended.text


async def test_a_mixture_is_no_member_and_no_auxiliary_model(tmp_path):
    more = MOA.replace("custom/red", "moa/council") + "auxiliary:\n  title:\n    model: moa/council\n"
    async with place(tmp_path, council, Options(model="moa/council", titles=True), more=more) as here:
        assert (await here.say("Who wins?")).text == "I heard blue."
        await here.runtime.settled()

        assert any("moa/council is a mixture, which only answers conversations" in text for text in await notices(here))
        assert [row.model for row in await rows_of(here) if row.purpose == "title"] == ["all"]


def models_of(loaded, secrets):
    async def reachable(route):
        return route

    return Models(
        loaded=loaded,
        secrets=secrets,
        cool_downs=BriefCoolDowns(),
        reachable=reachable,
        http=Http(),
        clock=SystemClock(),
    )


async def test_a_chain_is_made_once_unless_a_model_in_it_cannot_be_asked(tmp_path):
    settings = Settings(model=ModelSettings(default="openai/gpt-5.2", fallbacks=("openai/gpt-5.4",)))
    loaded = Loaded(value=settings, sources={}, problems=(), basis="file", plain={})
    models = models_of(loaded, Secrets(home=settle_home(tmp_path, ""), variables={"OPENAI_API_KEY": "one"}))

    assert await models.chain("") is await models.chain("")
    assert await models.chain("", "openai/gpt-5.4") is not await models.chain("")
    missing = await models.chain("", "anthropic/claude-opus-5-5")
    assert missing.unusable and missing is not await models.chain("", "anthropic/claude-opus-5-5")


async def test_every_fallback_that_can_be_asked_is_in_the_chain_once(tmp_path):
    variables = {"OPENAI_API_KEY": "one", "OPENAI_API_KEY_2": "two"}
    model = ModelSettings(default="openai/gpt-5.2", fallbacks=("anthropic/claude-opus-5-5", "openai/gpt-5.4", "openai"))
    settings = Settings(model=model, credentials={"openai": CredentialSettings(strategy="round_robin")})
    loaded = Loaded(value=settings, sources={}, problems=(), basis="file", plain={})
    secrets = Secrets(home=settle_home(tmp_path, ""), variables=variables)

    chain = await models_of(loaded, secrets).chain("")

    assert [leg.route.name for leg in chain.legs] == ["openai/gpt-5.2", "openai/gpt-5.4"]
    assert [one.name for one in chain.legs[0].credentials] == list(variables)
    assert chain.legs[0].strategy == "round_robin"
    (unusable,) = chain.unusable
    assert "anthropic/claude-opus-5-5 cannot be asked" in unusable


async def test_what_a_person_knows_better_and_where_they_signed_in_hold_for_fallbacks_too(tmp_path):
    model = ModelSettings(default="openai/gpt-5.2", fallbacks=("openai-codex", "ollama/own"))
    settings = Settings(model=model, models={"ollama/own": ModelOverride(window=32_768, tools=False)})
    loaded = Loaded(value=settings, sources={}, problems=(), basis="file", plain={})
    home = settle_home(tmp_path, "")
    AuthFile(home.root / "auth.json").put("openai-codex", SignedIn(access="a", refresh="r", expires=4e9))
    secrets = Secrets(home=home, variables={"OPENAI_API_KEY": "one"})

    _, codex, own = (await models_of(loaded, secrets).chain("")).legs

    assert codex.route.source is not None
    assert (own.route.facts.window, own.route.facts.tools) == (32_768, False)


async def test_a_run_is_answered_by_the_fallback_and_the_log_says_so(tmp_path):
    async with serving(openai_model(lambda _: Status(402))) as broke, serving(openai_model([Say("Here.")])) as spare:
        home = settle_home(tmp_path / "home", broke.url)
        home.config_file.write_text(
            f"model:\n  default: custom/first\n  base_url: {broke.url}\n  fallbacks: [openai/gpt-5.2]\n"
        )
        home.env_file.write_text(f"CUSTOM_API_KEY=test-key\nOPENAI_API_KEY=test-key\nOPENAI_BASE_URL={spare.url}\n")
        async with another(home, spare) as here:
            ended = await here.say("Hi")
            log = [entry.event for entry in await here.log()]
            resting = await here.runtime.store.cool_downs.resting(0.0)

    assert (ended.outcome, ended.text) == (Outcome.ANSWERED, "Here.")
    (notice,) = [event for event in log if isinstance(event, Notice)]
    assert notice.text.startswith("Answered by openai/gpt-5.2, because custom/first at ")
    (reply,) = [event for event in log if isinstance(event, Replied)]
    assert (reply.provider, reply.model) == ("openai", "gpt-5.2")
    assert [(one.provider, one.credential, one.reason) for one in resting] == [
        ("custom", "CUSTOM_API_KEY", "OutOfCredit")
    ]


REST = CoolDown(provider="openai", credential="K1", mark="abc", until=4e9, reason="AuthRefused")


async def test_what_one_process_lets_rest_another_one_knows(tmp_path):
    first, second = await open_store(tmp_path / "hermes.db"), await open_store(tmp_path / "hermes.db")
    await StoredCoolDowns(first, SystemClock()).rest([REST])

    assert await StoredCoolDowns(second, SystemClock()).resting(3e9) == [REST]

    await first.close()
    await second.close()


async def test_the_uses_of_a_key_are_those_of_the_ledger(tmp_path):
    store = await open_store(tmp_path / "hermes.db")
    row = UsageRow(
        call_id="c",
        session="",
        run="",
        turn=1,
        purpose="chat",
        provider="openai",
        model="m",
        prefix="",
        messages=1,
        at=5.0,
        principal="me",
        credential="K1",
    )
    await store.write(lambda tx: store.usage.open(tx, row))

    assert await StoredCoolDowns(store, SystemClock()).uses("openai", 0.0) == {"K1": Use(calls=1, last=5.0)}

    await store.close()


KEYS = {"OPENAI_API_KEY": "a-key", "ANTHROPIC_API_KEY": "another-key"}


def loaded(settings: ModelSettings, **overridden: str) -> Loaded[Settings]:
    value = Settings(model=settings)
    return Loaded(value=value, sources={}, problems=(), basis="file", plain={}, overridden=overridden)


def route(tmp_path, settings: ModelSettings, model: str = "", **overridden: str):
    return route_of(loaded(settings, **overridden), open_secrets(Home(root=tmp_path, base=tmp_path), KEYS), model)


def test_the_configured_model_is_asked_where_it_is(tmp_path):
    found = route(tmp_path, ModelSettings(default="custom/m", base_url="http://127.0.0.1:9/v1"))

    assert (found.name, found.base_url) == ("custom/m", "http://127.0.0.1:9/v1")


def test_a_model_that_is_named_goes_before_the_configured_one(tmp_path):
    assert route(tmp_path, ModelSettings(default="openai/gpt-5.2"), "anthropic/claude-x").name == "anthropic/claude-x"


def test_another_vendors_key_does_not_go_to_the_configured_address(tmp_path):
    found = route(tmp_path, ModelSettings(default="custom/m", base_url="http://127.0.0.1:9/v1"), "openai/gpt-5.2")

    assert "127.0.0.1" not in found.base_url


@pytest.mark.parametrize("written", ["custom/m", "ollama/qwen3", "llama", ""])
def test_neither_does_the_key_of_a_vendor_that_the_environment_names(tmp_path, written):
    settings = ModelSettings(default="openai/gpt-5.2", base_url="http://127.0.0.1:9/v1")

    found = route(tmp_path, settings, **{"model.default": written})

    assert found.base_url == "https://api.openai.com/v1"


def test_a_model_of_the_same_vendor_stays_at_the_configured_address(tmp_path):
    settings = ModelSettings(default="openai/gpt-5.4", base_url="http://127.0.0.1:9/v1")

    for written in ("openai/gpt-5.2", "gpt-5.2"):
        found = route(tmp_path, replace(settings, provider="openai"), **{"model.default": written})
        assert found.base_url == "http://127.0.0.1:9/v1"
    found = route(tmp_path, replace(settings, default="gpt-5.2", provider="openai"), "openai/gpt-5.4")
    assert found.base_url == "http://127.0.0.1:9/v1"


def test_no_key_names_both_ways_on(tmp_path):
    with pytest.raises(NoModel, match=r"`hermes setup`.*`hermes demo`"):
        route_of(loaded(ModelSettings()), open_secrets(Home(root=tmp_path, base=tmp_path), {}))


@pytest.mark.parametrize(("usual", "named"), [("custom/m", "custom/n"), ("openai/gpt-5.2", "custom/m"), ("m", "n")])
def test_what_has_no_address_of_its_own_is_asked_where_the_settings_say(tmp_path, usual, named):
    found = route(tmp_path, ModelSettings(default=usual, base_url="http://127.0.0.1:9/v1"), named)

    assert found.base_url == "http://127.0.0.1:9/v1"
