"""Fallbacks and keys out of the settings, seen through whole runs."""

from hermes_agent.app.models.chains import chain_of
from hermes_agent.app.settings import Settings
from hermes_agent.core.events import Notice, Outcome, Replied
from hermes_agent.host.config import Loaded
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.routing.cooldowns import BriefCoolDowns
from hermes_agent.providers.settings import CredentialSettings, ModelOverride, ModelSettings
from hermes_agent.providers.signin.auth_file import AuthFile, SignedIn
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import another, settle_home


async def reachable(route):
    return route


async def test_every_fallback_that_can_be_asked_is_in_the_chain_once(tmp_path):
    variables = {"OPENAI_API_KEY": "one", "OPENAI_API_KEY_2": "two"}
    model = ModelSettings(default="openai/gpt-5.2", fallbacks=("anthropic/claude-opus-5-5", "openai/gpt-5.4", "openai"))
    settings = Settings(model=model, credentials={"openai": CredentialSettings(strategy="round_robin")})
    loaded = Loaded(value=settings, sources={}, problems=(), basis="file", plain={})
    secrets = Secrets(home=settle_home(tmp_path, ""), variables=variables)

    chain = await chain_of(loaded, secrets, "", BriefCoolDowns(), reachable)

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

    _, codex, own = (await chain_of(loaded, secrets, "", BriefCoolDowns(), reachable)).legs

    assert codex.route.source is not None
    assert (own.route.facts.window, own.route.facts.tools, own.route.cache) == (32_768, False, home.cache)


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
