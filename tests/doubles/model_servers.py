"""Model servers of the protocols that the shipped `openai_model` does not speak."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_agent.testing.model_servers import KEY, ModelServer, scripted
from hermes_agent.testing.scripted import Script, ScriptedModel
from tests.doubles.anthropic_wire import AnthropicWire
from tests.doubles.bedrock_wire import BedrockWire
from tests.doubles.gemini_wire import GeminiStyle, GeminiWire
from tests.doubles.responses_request import ResponsesStyle
from tests.doubles.responses_wire import ResponsesWire


def responses_model(
    script: Script | ScriptedModel,
    *,
    keys: tuple[str, ...] = (KEY,),
    models: tuple[str, ...] = (),
    style: ResponsesStyle | None = None,
) -> ModelServer:
    """A server of the OpenAI Responses protocol, not yet served."""
    return ModelServer(ResponsesWire(style), scripted(script), keys=keys, models=models)


def anthropic_model(
    script: Script | ScriptedModel, *, keys: tuple[str, ...] = (KEY,), models: tuple[str, ...] = ()
) -> ModelServer:
    """A server of the Anthropic protocol, not yet served."""
    return ModelServer(AnthropicWire(), scripted(script), keys=keys, models=models)


def gemini_model(
    script: Script | ScriptedModel,
    *,
    keys: tuple[str, ...] = (KEY,),
    models: tuple[str, ...] = (),
    style: GeminiStyle | None = None,
) -> ModelServer:
    """A server of the Gemini protocol, not yet served."""
    return ModelServer(GeminiWire(style), scripted(script), keys=keys, models=models)


def bedrock_model(
    script: Script | ScriptedModel,
    *,
    keys: tuple[str, ...] = (KEY,),
    models: tuple[str, ...] = (),
    secrets: Mapping[str, str] | None = None,
) -> ModelServer:
    """A server of the Bedrock Converse protocol, not yet served. `keys` are bearer keys and access keys; `secrets`
    holds the secret of each access key."""
    return ModelServer(BedrockWire(secrets or {}), scripted(script), keys=keys, models=models)
