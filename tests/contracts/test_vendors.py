"""What holds for every vendor's facts: a server with its rules takes its requests, and its key goes only there."""

from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from hermes_agent.core.errors import AuthRefused, NoModel, OutOfCredit, ProviderError
from hermes_agent.core.messages import Image, Message, ModelRequest, Role, said
from hermes_agent.host.http import Http
from hermes_agent.host.late import late
from hermes_agent.providers.broker import Broker
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.providers.dialects import DIALECTS
from hermes_agent.providers.route import GAP, NOTHING, Grant, Route, choose, load_vendor
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.settings import ModelOverride, ModelSettings
from hermes_agent.providers.vendor import Vendor
from hermes_agent.providers.vendors import VENDORS
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import ModelServer, serving
from tests.doubles.model_servers import anthropic_model, bedrock_model, gemini_model, responses_model
from tests.doubles.vendor_rules import RULES, vendor_model
from tests.providers.asking import PIXEL, PREFIX, Book, HastyClock, result

SPOKEN = {
    "openai_chat": vendor_model,
    "openai_responses": lambda _, script, **more: responses_model(script, **more),
    "anthropic": lambda _, script, **more: anthropic_model(script, **more),
    "gemini": lambda _, script, **more: gemini_model(script, **more),
    "bedrock": lambda _, script, **more: bedrock_model(script, **more),
}
# The demo lives in this process and has neither key nor address, a mixture is made of others; who signs without a key
# is in tests/providers/signing.
ASKED = [
    name
    for name in VENDORS
    if load_vendor(name).dialect in SPOKEN
    and not (load_vendor(name).server or load_vendor(name).mixes)
    and (load_vendor(name).key_names or not load_vendor(name).sign)
]
# With a window set, a local server is not asked for its own.
QUIET = ModelSettings(window=100_000)
EVERY = pytest.mark.parametrize("vendor", [load_vendor(name) for name in ASKED], ids=lambda vendor: vendor.name)
KEYED = pytest.mark.parametrize(
    "vendor", [load_vendor(name) for name in ASKED if load_vendor(name).key_names], ids=lambda vendor: vendor.name
)
# A key for every name that any vendor looks under: each can be told from all others.
KEYS = {
    name: f"key-{number}-of-{name}"
    for number, name in enumerate(sorted({name for vendor in VENDORS for name in load_vendor(vendor).key_names}))
}


Models = Mapping[str, ModelOverride]
SIGNED_IN = "key-of-a-sign-in"


class SignedIn:
    """Somebody who signed in; each key that was refused is followed by another."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys) or [SIGNED_IN]

    async def __call__(self, _http: Http, *, refused: str = "") -> Grant:
        if refused and len(self.keys) > 1:
            self.keys.remove(refused)
        return Grant(key=self.keys[0], headers=(("account", "a1"),))


@dataclass(slots=True, kw_only=True)
class Talk:
    """A conversation with one vendor's double."""

    broker: Broker
    server: ModelServer
    messages: list[Message]

    async def ask(self, **changes: object) -> Message:
        request = ModelRequest(
            call_id=f"c{len(self.server.exchanges)}",
            session="s",
            run="r",
            turn=1,
            purpose="chat",
            prefix=PREFIX,
            messages=self.messages,
            **changes,
        )
        *_, reply = [item async for item in self.broker.ask(request)]
        self.messages.append(reply.message)
        return reply.message


def route_of(
    vendor: Vendor, address: str, *, signed_in: SignedIn | None = None, models: Models = NOTHING, **keys: str
) -> Route:
    model = vendor.default_model or "some-model"
    settings = ModelSettings(default=f"{vendor.name}/{model}", base_url=address)
    return choose(settings, (keys or KEYS).get, models, lambda _: signed_in)


@asynccontextmanager
async def talking(
    vendor: Vendor,
    script: list,
    keys: tuple[str, ...] = (),
    signed_in: SignedIn | None = None,
    models: Models = NOTHING,
    **secrets: str,
):
    known = keys or tuple(KEYS[name] for name in vendor.key_names[:1]) or (SIGNED_IN,)
    if vendor.sign_in and not vendor.key_names:
        signed_in = signed_in or SignedIn()
    async with serving(SPOKEN[vendor.dialect](vendor.name, script, keys=known)) as server:
        http = Http()
        route = route_of(vendor, server.url, signed_in=signed_in, models=models, **secrets)
        broker = Broker(single(route, http, HastyClock(), QUIET), Book())
        try:
            yield Talk(broker=broker, server=server, messages=[said("Hello")])
        finally:
            await http.close()


def test_every_vendor_with_rules_of_its_own_is_there():
    assert set(RULES) <= set(VENDORS)


@EVERY
async def test_a_conversation_with_thinking_calls_and_their_results_is_taken(vendor: Vendor):
    script = [
        Answer(pieces=(Think("I look."), Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"}))),
        Answer(pieces=(Think("Seen."), Say("Both are there."))),
        Say("You are welcome."),
    ]
    async with talking(vendor, script) as talk:
        first, second = (await talk.ask(effort="high")).tool_calls
        talk.messages += [Message(role=Role.TOOL, parts=(result(each.id, "text"),)) for each in (first, second)]
        assert (await talk.ask(effort="none")).text == "Both are there."
        talk.messages.append(said("Thanks"))
        assert (await talk.ask(use_tools=False)).text == "You are welcome."
        assert [exchange.status for exchange in talk.server.exchanges] == [200, 200, 200]
        assert talk.server.asked[0].tools
        last = talk.server.asked[-1]
        assert not last.tools or not last.use_tools or "No tool may be called now" in last.last.text


@EVERY
async def test_a_message_that_arrives_beside_results_is_taken(vendor: Vendor):
    async with talking(vendor, [(Think("Hm."), Call("read_file", {"path": "a"})), Say("Good.")]) as talk:
        (call,) = (await talk.ask()).tool_calls
        talk.messages += [Message(role=Role.TOOL, parts=(result(call.id, "text", image=True),)), said("And b?")]
        assert (await talk.ask()).text == "Good."


@KEYED
async def test_the_key_goes_only_to_its_vendor(vendor: Vendor):
    async with talking(vendor, [Say("Hi.")]) as talk:
        await talk.ask()
        (exchange,) = talk.server.exchanges
        sent = exchange.request.body.decode() + str(exchange.request.headers) + exchange.request.path
    assert [name for name, key in KEYS.items() if key in sent] == [vendor.key_names[0]]


@KEYED
async def test_a_wrong_key_is_told_with_vendor_and_name_and_without_the_key(vendor: Vendor):
    async with talking(vendor, [Say("Hi.")], keys=("another",)) as talk:
        with pytest.raises(AuthRefused) as caught:
            await talk.ask()
    assert vendor.name in str(caught.value)
    assert vendor.key_names[0] in str(caught.value)
    assert KEYS[vendor.key_names[0]] not in str(caught.value)


@EVERY
@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Status(401, "This API key has been revoked."), AuthRefused),
        (Status(403, "Your key may not use this model."), AuthRefused),
        (Status(402, "Insufficient Balance"), OutOfCredit),
        (Status(400, "Your credit balance is too low to access the API."), OutOfCredit),
    ],
)
async def test_a_revoked_key_and_an_empty_account_are_told_apart(
    vendor: Vendor, refusal: Status, kind: type[ProviderError]
):
    async with talking(vendor, [refusal] * 5) as talk:
        with pytest.raises(kind, match=vendor.name):
            await talk.ask()
        assert len(talk.server.exchanges) == 1


@KEYED
def test_without_a_key_it_is_said_what_to_do(vendor: Vendor):
    if not vendor.needs_key:
        assert route_of(vendor, "http://127.0.0.1:9/v1", NOTHING="").key == ""
        return
    with pytest.raises(NoModel, match=vendor.key_names[0]) as caught:
        route_of(vendor, "http://127.0.0.1:9/v1", NOTHING="")
    assert vendor.keys_at in str(caught.value)


@pytest.mark.parametrize("name", VENDORS)
def test_the_facts_are_whole(name: str):
    vendor = load_vendor(name)
    assert isinstance(vendor, Vendor)
    assert vendor.name == name
    assert vendor.dialect in DIALECTS
    assert not vendor.base_url.endswith("/")
    assert vendor.base_url.startswith(("https://", "http://127.0.0.1:", "")) if vendor.base_url else vendor.address
    assert not vendor.needs_key or vendor.sign_in or (vendor.key_names and vendor.keys_at.startswith("https://"))
    assert not vendor.sign_in or late(vendor.sign_in).vendor == name
    assert not vendor.window_probe or callable(late(vendor.window_probe))
    assert not vendor.regions or vendor.base_url in vendor.regions.values()
    assert not vendor.catalogue or vendor.catalogue in VENDORS


@pytest.mark.parametrize("name", [name for name in VENDORS if load_vendor(name).regions])
def test_an_unknown_region_is_told_with_the_known_ones(name: str):
    vendor = load_vendor(name)
    settings = ModelSettings(default=name, region="nowhere")
    with pytest.raises(NoModel, match=rf"no region `nowhere`.*{next(iter(vendor.regions))}"):
        choose(settings, KEYS.get)
    for region, address in vendor.regions.items():
        route = choose(ModelSettings(default=name, region=region), {**KEYS, "GOOGLE_CLOUD_PROJECT": "my project"}.get)
        assert (route.base_url, route.region) == (GAP.sub("my%20project", address), region)


@EVERY
async def test_a_model_without_tools_and_eyes_gets_neither_tools_nor_pictures_and_is_told(vendor: Vendor):
    model = f"{vendor.name}/{vendor.default_model or 'some-model'}"
    plain = {model: ModelOverride(tools=False, images=False, files=False)}
    picture = Message(role=Role.USER, parts=(Image(data=PIXEL, media_type="image/png"),))
    async with talking(vendor, [Say("I see no picture.")], models=plain) as talk:
        talk.messages[:] = [picture]
        await talk.ask()
        (exchange,) = talk.server.exchanges
    assert not exchange.heard.tools
    assert PIXEL not in exchange.request.body.decode()
    assert "that this model cannot see" in exchange.heard.last.text


SIGNED = pytest.mark.parametrize(
    "vendor", [load_vendor(name) for name in ASKED if load_vendor(name).sign_in], ids=lambda vendor: vendor.name
)


@SIGNED
async def test_who_signed_in_is_asked_with_that_key_and_its_headers(vendor: Vendor):
    async with talking(vendor, [Say("Hi.")], (SIGNED_IN,), SignedIn(), NOTHING="") as talk:
        await talk.ask()
        (exchange,) = talk.server.exchanges
    assert exchange.request.headers["authorization"] == f"Bearer {SIGNED_IN}"
    assert exchange.request.headers["account"] == "a1"
    assert "x-api-key" not in exchange.request.headers


@SIGNED
async def test_a_key_that_was_revoked_is_renewed_once_and_the_answer_comes(vendor: Vendor):
    async with talking(vendor, [Say("Hi.")], ("second",), SignedIn("first", "second"), NOTHING="") as talk:
        assert (await talk.ask()).text == "Hi."
    assert [exchange.status for exchange in talk.server.exchanges] == [401, 200]


@SIGNED
async def test_a_key_that_stays_refused_ends_the_run(vendor: Vendor):
    async with talking(vendor, [Say("Hi.")], ("third",), SignedIn("first", "second"), NOTHING="") as talk:
        with pytest.raises(AuthRefused, match=vendor.name):
            await talk.ask()
    assert len(talk.server.exchanges) == 2


@SIGNED
def test_without_a_sign_in_it_is_said_what_to_do(vendor: Vendor):
    with pytest.raises(NoModel, match="API_KEY" if vendor.key_names else "hermes login"):
        route_of(vendor, "http://127.0.0.1:9", NOTHING="")
