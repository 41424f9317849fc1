"""What the server says of itself: health, figures, its description, the skills; and how it is started."""

import asyncio
import json
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hermes_agent.api.endpoint import Nothing
from hermes_agent.api.meta import description
from hermes_agent.api.metrics import Metrics
from hermes_agent.api.serve import ENDPOINTS, Servers, keys_of, serve
from hermes_agent.app.settings import ApiKeySettings, ApiSettings, Settings, WebhookSettings
from hermes_agent.core.errors import ConfigError
from hermes_agent.host.config import load
from hermes_agent.host.inbound.listener import Listening
from tests.api.served import MEMBER_KEY, OWNER_KEY, SECRETS, SETTINGS, served
from tests.app.place import counting, settle_home


async def test_health_needs_no_key(tmp_path):
    async with served(tmp_path, counting) as server:
        for path in ("/health", "/v1/health"):
            assert (await server.ask("GET", path, key="")).json()["status"] == "ok"


async def test_health_fails_with_the_database(tmp_path):
    async with served(tmp_path, counting) as server:
        await server.runtime.store.close()
        answer = await server.ask("GET", "/health", key="")
        assert (answer.status_code, answer.json()["status"]) == (503, "failing")
        assert answer.json()["reasons"] == ["The database cannot be written."]


async def test_figures_are_in_prometheus_s_format(tmp_path):
    async with served(tmp_path, counting) as server:
        await server.chat("Hi")
        await server.ask("GET", "/nowhere")
        answer = await server.ask("GET", "/metrics")
        values = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert values['hermes_http_requests_total{method="POST",path="/v1/chat/completions",status="200"}'] == "1"
    assert values['hermes_http_requests_total{method="GET",path="other",status="404"}'] == "1"
    assert values['hermes_runs_total{outcome="answered"}'] == "1"
    assert values["hermes_runs_waited_for"] == "0"
    assert values['hermes_http_seconds_bucket{le="+Inf"}'] == values["hermes_http_seconds_count"] == "2"
    assert float(values["process_cpu_seconds_total"]) > 0


def test_figures_are_read_by_prometheus_s_own_parser_whatever_a_route_is_called():
    figures = Metrics()
    figures.answered("GET", "/x", 200, 0.2)
    figures.runs["answered"] += 2
    name = 'a "b" \\ c\n'
    figures.webhooks[name, "accepted"] += 1
    families = {each.name: each for each in text_string_to_metric_families(figures.text(3).decode())}

    assert {name: families[name].type for name in ("hermes_http_seconds", "hermes_runs", "hermes_runs_waited_for")} == {
        "hermes_http_seconds": "histogram",
        "hermes_runs": "counter",
        "hermes_runs_waited_for": "gauge",
    }
    assert families["hermes_webhooks"].samples[0].labels == {"route": name, "outcome": "accepted"}
    assert families["hermes_runs"].samples[0].value == 2


def test_a_slow_answer_counts_in_its_bucket_and_above():
    figures = Metrics()
    figures.answered("GET", "/x", 200, 0.2)
    figures.answered("GET", "/x", 200, 99.0)
    figures.webhooks["push", "accepted"] += 1
    text = figures.text(3).decode()

    assert 'hermes_http_seconds_bucket{le="0.1"} 0\nhermes_http_seconds_bucket{le="0.25"} 1\n' in text
    assert 'hermes_http_seconds_bucket{le="60"} 1\nhermes_http_seconds_bucket{le="+Inf"} 2\n' in text
    assert 'hermes_webhooks_total{route="push",outcome="accepted"} 1' in text


async def test_the_description_is_served_and_names_every_endpoint(tmp_path):
    async with served(tmp_path, counting) as server:
        told = (await server.ask("GET", "/openapi.json")).json()

    assert {(method.upper(), path) for path, found in told["paths"].items() for method in found} == {
        (each.method, each.path.replace(":path", "")) for each in ENDPOINTS
    }
    assert told["paths"]["/health"]["get"]["security"] == []
    own = told["paths"]["/openapi.json"]["get"]["responses"]["200"]["content"]
    assert own == {"application/json": {"schema": {"type": "object"}}}
    assert told["paths"]["/v1/search"]["get"]["parameters"][0]["name"] == "q"
    references = {word for word in json.dumps(told).split('"') if word.startswith("#/components/schemas/")}
    assert {each.rpartition("/")[2] for each in references} <= set(told["components"]["schemas"])
    assert Nothing.__name__ not in json.dumps(description(ENDPOINTS))


async def test_the_models_of_a_member_are_the_agent_alone(tmp_path):
    async with served(tmp_path, counting) as server:
        names = [each["id"] for each in (await server.ask("GET", "/v1/models", key=MEMBER_KEY)).json()["data"]]
        assert names == ["hermes"]
        assert (await server.ask("GET", "/v1/models/custom/m")).json()["id"] == "custom/m"


async def test_the_process_says_where_it_answers_and_ends_when_told(tmp_path):
    home = settle_home(tmp_path / "home", "http://127.0.0.1:1", SETTINGS)
    home.env_file.write_text(SECRETS)
    told, said = asyncio.Event(), []

    def say(text: str) -> None:
        said.append(text)
        told.set()

    await serve(home, say, until_told=told.wait)

    assert said[0].startswith("The API answers at http://127.0.0.1:")


async def test_without_keys_and_webhooks_nothing_listens(tmp_path):
    said: list[str] = []
    async with served(tmp_path, counting) as server:
        servers = Servers(server.runtime, said.append)
        await servers.follow(server.runtime.settings)
        assert said == []
        assert servers.url == ""


async def test_a_broken_config_is_told_of_and_the_last_good_one_served(tmp_path):
    home = settle_home(tmp_path / "home", "http://127.0.0.1:1", SETTINGS)
    home.env_file.write_text(SECRETS)
    load(home.ensure(), Settings)
    home.config_file.write_text("nonsense: 1\n")
    said: list[str] = []

    async def at_once() -> None:
        """Nobody waits."""

    await serve(home, said.append, until_told=at_once)

    assert "nonsense" in said[0]
    assert "answers at" in said[1]


async def test_a_port_that_is_taken_is_said_so(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        home = settle_home(tmp_path / "home", "http://127.0.0.1:1", f"api:\n  port: {taken.getsockname()[1]}\n")
        home.env_file.write_text(SECRETS)
        with pytest.raises(ConfigError, match="choose another port"):
            await serve(home, print, until_told=asyncio.Event().wait)


def test_an_address_of_six_groups_stands_in_brackets():
    assert Listening(host="::1", port=1, cut=print).url == "http://[::1]:1"


@pytest.mark.parametrize(
    ("hooks", "names", "secret", "opens"),
    [(True, {}, "", False), (True, {}, OWNER_KEY, True), (True, {"anna": ApiKeySettings(secret="A")}, "", True)],
)
def test_webhooks_alone_need_no_key_of_the_api(hooks, names, secret, opens):
    settings = Settings(api=ApiSettings(keys=names), webhooks=WebhookSettings(enabled=hooks))
    values = {"A": "k" * 17, "API_SERVER_KEY": secret}
    assert (keys_of(settings, lambda name: values.get(name, "")) is not None) is opens


@pytest.mark.parametrize("hooks", [True, False])
def test_a_key_that_is_short_or_nobody_s_is_an_error_also_beside_webhooks(hooks):
    settings = Settings(webhooks=WebhookSettings(enabled=hooks))
    with pytest.raises(ConfigError, match="hermes api key"):
        keys_of(settings, lambda name: "short" if hooks else "")
