"""What the server says of itself: models, skills, health, figures, and its own description."""

from __future__ import annotations

from hermes_agent.api.app_state import AppState
from hermes_agent.api.endpoint import Answer, Call, Endpoint, JsonAnswer, Nothing, Plain
from hermes_agent.api.metrics import MEDIA_TYPE
from hermes_agent.api.problems import missing
from hermes_agent.api.response_schemas import Health, ModelFacts, ModelList, SkillFacts, SkillList
from hermes_agent.api.service import SELF
from hermes_agent.app.system import System
from hermes_agent.core.errors import NoModel
from hermes_agent.core.inbound import Standing
from hermes_agent.version import VERSION

MOST_SKILLS = 500


async def models(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """The names that `model` may have."""
    return ModelList(data=[ModelFacts(id=name) for name in names(state, call.who.standing)])


async def model(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """One of them."""
    name = call.path["id"]
    if name not in names(state, call.who.standing):
        raise missing(f"There is no model `{name[:100]}` here.", "model_not_found")
    return ModelFacts(id=name)


def names(state: AppState, standing: Standing) -> list[str]:
    """The agent itself; and for the owner, who may choose, the model that is configured."""
    found = [SELF]
    if standing is Standing.OWNER:
        try:
            found.append(state.runtime.route().name)
        except NoModel:
            return found
    return found


async def skills(state: AppState, call: Call[Nothing, Nothing]) -> Answer:
    """The skills."""
    cards = await state.access(call.who).skills(MOST_SKILLS)
    return SkillList(
        data=[SkillFacts(name=card.name, description=card.description, layer=card.layer.value) for card in cards]
    )


async def health(state: AppState, call: Call[Nothing, Nothing]) -> Answer:  # noqa: ARG001  an endpoint's shape
    """Whether the process gets on; 503 where it does not."""
    status, body = await healthy(state.runtime)
    return JsonAnswer(body=body, status=status)


async def healthy(runtime: System) -> tuple[int, Health]:
    """How a system is: the status of an answer, and its body."""
    reasons = [ailment.text for ailment in await runtime.health.ailments()]
    return (503 if reasons else 200), Health(status="failing" if reasons else "ok", version=VERSION, reasons=reasons)


async def metrics(state: AppState, call: Call[Nothing, Nothing]) -> Answer:  # noqa: ARG001  an endpoint's shape
    """What is counted, for Prometheus."""
    return Plain(body=state.metrics.text(state.service.waiting), media_type=MEDIA_TYPE)


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
