"""Endpoints about the server: the OpenAPI document, model names, skills, health and metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing, asks, shows
from hermes_agent.api.metrics import MEDIA_TYPE
from hermes_agent.api.problems import ErrorAnswer, in_json, missing
from hermes_agent.api.response_schemas import Health, ModelFacts, ModelList, SkillList
from hermes_agent.api.service import SELF
from hermes_agent.app.operations.skills import list_skills
from hermes_agent.app.system import System
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import NoModel
from hermes_agent.host.inbound.message import Response
from hermes_agent.version import VERSION

SLOT = re.compile(r"\{(\w+)(?::path)?\}")
NO_WORD = re.compile(r"\W+")
JSON = "application/json"
EVENTS = "text/event-stream"
PLAIN = {JSON: {"schema": {"type": "object"}}, "text/plain": {"schema": {"type": "string"}}}
"""Answers that are no record, as the description has them; of events it says nothing more."""


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The OpenAPI 3.1 document as plain values."""
    kinds = {kind for each in endpoints for kind in (each.body, each.query, each.answer) if kind is not None}
    kinds = (kinds - {Nothing}) | {ErrorAnswer}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    known = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        path = SLOT.sub(r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, known, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hermes", "version": VERSION, "description": "The agent, for programs."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _operation(each: Endpoint, known: dict[type[Any], Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": each.summary,
        "operationId": f"{each.method.lower()}_{NO_WORD.sub('_', each.path).strip('_')}",
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in SLOT.findall(each.path)
        ],
        "responses": {
            str(each.status): _answer(each, known),
            "default": {"description": "Not done, and why.", "content": {JSON: {"schema": known[ErrorAnswer]}}},
        },
    }
    if each.is_open:
        operation["security"] = []
    if each.query is not Nothing:
        schema = components[each.query.__name__]
        required = schema.get("required", ())
        operation["parameters"] += [
            {"name": name, "in": "query", "required": name in required, "schema": kind}
            for name, kind in schema["properties"].items()
        ]
    if each.body is not Nothing:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": known[each.body]}}}
    return operation


def _answer(each: Endpoint, known: dict[type[Any], Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if each.answer is not None:
        content[JSON] = {"schema": known[each.answer]}
    else:
        content[each.media_type] = PLAIN.get(each.media_type, {})
    if each.streams:
        content[EVENTS] = {}
    return {"description": "Done.", "content": content}


MOST_SKILLS = 500


async def models(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """List the names allowed as `model`."""
    return ModelList(data=[ModelFacts(id=name) for name in names(state, call.who.standing)])


async def model(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """Show one model name."""
    name = call.path["id"]
    if name not in names(state, call.who.standing):
        raise missing(f"There is no model `{name[:100]}` here.", "model_not_found")
    return ModelFacts(id=name)


def names(state: AppState, standing: Standing) -> list[str]:
    """The agent itself and, for the owner, who may choose, the configured model."""
    found = [SELF]
    if standing is Standing.OWNER:
        try:
            found.append(state.runtime.route().name)
        except NoModel:
            return found
    return found


async def health(state: AppState, call: Call[Nothing, Nothing]) -> Answer:  # noqa: ARG001  an endpoint's shape
    """Health check; status 503 on failure."""
    return await healthy(state.runtime)


async def healthy(runtime: System) -> Response:
    """The health response of a system."""
    reasons = [ailment.text for ailment in await runtime.health.ailments()]
    body = Health(status="failing" if reasons else "ok", version=VERSION, reasons=reasons)
    return in_json(body, 503 if reasons else 200)


async def metrics(state: AppState, call: Call[Nothing, Nothing]) -> Answer:  # noqa: ARG001  an endpoint's shape
    """Metrics for Prometheus."""
    text = state.metrics.text(state.service.waiting)
    return Response(headers={"content-type": MEDIA_TYPE}, body=text)


SKILLS = asks(partial(list_skills, limit=MOST_SKILLS), lambda found: shows(SkillList)({"data": found}))
ENDPOINTS = (
    Endpoint(method="GET", path="/health", act=health, summary="Whether it works.", answer=Health, is_open=True),
    Endpoint(method="GET", path="/v1/health", act=health, summary="The same.", answer=Health, is_open=True),
    Endpoint(
        method="GET",
        path="/metrics",
        act=metrics,
        summary="Figures, in Prometheus's text format.",
        answer=None,
        media_type="text/plain",
    ),
    Endpoint(method="GET", path="/v1/models", act=models, summary="The names that `model` may have.", answer=ModelList),
    Endpoint(method="GET", path="/v1/models/{id:path}", act=model, summary="One of them.", answer=ModelFacts),
    Endpoint(method="GET", path="/v1/skills", act=SKILLS, summary="The skills, by name.", answer=SkillList),
)
