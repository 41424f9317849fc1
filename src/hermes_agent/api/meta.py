"""Endpoints about the server: models, skills, health and metrics."""

from __future__ import annotations

from hermes_agent.api.endpoint import Answer, AppState, Call, Endpoint, Nothing
from hermes_agent.api.metrics import MEDIA_TYPE
from hermes_agent.api.problems import in_json, missing
from hermes_agent.api.response_schemas import Health, ModelFacts, ModelList, SkillFacts, SkillList
from hermes_agent.api.service import SELF
from hermes_agent.app.operations.skills import list_skills
from hermes_agent.app.system import System
from hermes_agent.core.errors import NoModel
from hermes_agent.core.inbound import Standing
from hermes_agent.host.inbound.message import Response
from hermes_agent.version import VERSION

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


async def skills(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """List the skills."""
    cards = await list_skills(state.access(call.who), MOST_SKILLS)
    return SkillList(
        data=[SkillFacts(name=card.name, description=card.description, layer=card.layer.value) for card in cards]
    )


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
    Endpoint(method="GET", path="/v1/skills", act=skills, summary="The skills, by name.", answer=SkillList),
)
