"""Chat completions as single vendors take them: what each refuses that OpenAI's own service takes, in its words.

From the vendors' public references: docs.mistral.ai/api, api-docs.deepseek.com/guides/thinking_mode,
platform.kimi.ai/docs, docs.z.ai/api-reference, console.groq.com/docs/api-reference,
learn.microsoft.com/azure/foundry/openai.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Usage
from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.openai_wire import OpenAIStyle, OpenAIWire, sse
from hermes_agent.providers.demo.script import Answer, Heard, RequestRefused
from hermes_agent.providers.dialects.openai_chat import SEEN
from hermes_agent.testing.model_servers import KEY, ModelServer
from hermes_agent.testing.scripted import Script, ScriptedModel

Json = Mapping[str, Any]

OPENAI_FIELDS = frozenset(
    (
        *("model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls"),
        *("max_completion_tokens", "max_tokens", "reasoning_effort", "prompt_cache_key", "temperature", "top_p"),
        *("stop", "seed", "user", "metadata", "store", "response_format"),
    )
)
MISTRAL_FIELDS = frozenset(
    (
        *("model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "n"),
        *("reasoning_effort", "prompt_mode", "safe_prompt", "temperature", "top_p", "stop", "random_seed"),
        *("response_format", "prediction", "metadata", "presence_penalty", "frequency_penalty"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one vendor wants.

    `key_header` holds the key. `fields` are the only ones that a request may have (None: others are looked past);
    `message_fields` are refused in an assistant's message. `call_id` is what the id of a call must be.
    `tool_choices` are the values of `tool_choice` that are taken. `reasoning` is the field in which reasoning is sent;
    with `wants_reasoning` an assistant's message with calls must bring it back.
    """

    key_header: str = "authorization"
    fields: frozenset[str] | None = None
    message_fields: frozenset[str] = frozenset()
    call_id: str = ""
    developer: bool = False
    user_after_tool: bool = True
    tool_choices: frozenset[str] = frozenset({"none", "auto", "required"})
    reasoning: str = "reasoning_content"
    wants_reasoning: bool = False


RULES: Mapping[str, Rules] = {
    "openai": Rules(fields=OPENAI_FIELDS, developer=True, message_fields=frozenset({"reasoning_content", "reasoning"})),
    "azure": Rules(
        key_header="api-key",
        fields=OPENAI_FIELDS,
        developer=True,
        message_fields=frozenset({"reasoning_content", "reasoning"}),
    ),
    "mistral": Rules(
        fields=MISTRAL_FIELDS,
        message_fields=frozenset({"reasoning_content", "reasoning"}),
        call_id=r"[a-zA-Z0-9]{9}",
        user_after_tool=False,
        reasoning="parts",
    ),
    "deepseek": Rules(wants_reasoning=True),
    "kimi": Rules(wants_reasoning=True),
    "zai": Rules(tool_choices=frozenset({"auto"})),
    "groq": Rules(message_fields=frozenset({"reasoning_content"}), reasoning="reasoning"),
    "openrouter": Rules(reasoning="reasoning"),
    "ollama": Rules(reasoning="reasoning"),
}


class RuledWire(OpenAIWire):
    """One vendor's side of the protocol."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(OpenAIStyle(reasoning_field="reasoning" if rules.reasoning == "reasoning" else TOLD))
        self._rules = rules

    def key(self, request: Request) -> str:
        """The credential, from the header in which this vendor wants it; never from another."""
        value = request.headers.get(self._rules.key_header, "")
        return value.removeprefix("Bearer ") if self._rules.key_header == "authorization" else value

    def read(self, request: Request) -> Heard:
        """The question. Raises `RequestRefused` for what this vendor does not allow."""
        plain = json.loads(request.body)
        self._check(plain)
        for message in plain["messages"]:
            if message["role"] == "assistant" and isinstance(message.get("content"), list):
                message.update(_flat(message))
        if not self._rules.user_after_tool:
            # What stands there for the order's sake is no turn of the script's.
            plain["messages"] = [entry for entry in plain["messages"] if entry.get("content") != SEEN]
        return super().read(replace(request, body=json.dumps(plain).encode()))

    def events(self, answer: Answer, heard: Heard, usage: Usage) -> Iterator[bytes]:
        """The streamed reply."""
        for event in super().events(answer, heard, usage):
            yield _in_parts(event) if self._rules.reasoning == "parts" else event

    def _check(self, plain: Json) -> None:
        rules = self._rules
        unknown = sorted(set(plain) - (rules.fields if rules.fields is not None else set(plain)))
        if unknown:
            raise RequestRefused(f"Extra inputs are not permitted: {', '.join(unknown)}", status=422)
        if plain.get("tool_choice", "auto") not in rules.tool_choices:
            raise RequestRefused(f"tool_choice: {plain['tool_choice']} is not supported")
        if self._rules.wants_reasoning and "thinking" in plain and plain["thinking"].get("type") == "disabled":
            rules = replace(rules, wants_reasoning=False)
        before = ""
        for message in plain["messages"]:
            _check_message(message, rules, before)
            before = message["role"]


TOLD = "reasoning_content"


def _check_message(message: Json, rules: Rules, before: str) -> None:
    role, calls = message["role"], message.get("tool_calls") or ()
    if role == "developer" and not rules.developer:
        raise RequestRefused("unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`")
    if role == "user" and before == "tool" and not rules.user_after_tool:
        raise RequestRefused("Unexpected role 'user' after role 'tool'")
    for name in sorted(rules.message_fields & set(message)):
        raise RequestRefused(f"property '{name}' is unsupported")
    for identity in (*(call["id"] for call in calls), message.get("tool_call_id")):
        if rules.call_id and identity is not None and not re.fullmatch(rules.call_id, identity):
            raise RequestRefused(f"Tool call id was {identity} but must be a-z, A-Z, 0-9, with a length of 9.")
    if rules.wants_reasoning and calls and not message.get(TOLD):
        raise RequestRefused("The reasoning_content in the thinking mode must be passed back to the API.")


def _flat(message: Json) -> Json:
    """A message whose content has thinking parts, as one with a field for its reasoning."""
    thoughts = [part for part in message["content"] if part["type"] == "thinking"]
    words = [part for part in message["content"] if part["type"] != "thinking"]
    told = "".join(inner["text"] for part in thoughts for inner in part["thinking"])
    return {"content": words or None if message.get("tool_calls") else words or "", TOLD: told}


def _in_parts(event: bytes) -> bytes:
    """An event whose reasoning stands in the content, as a list of parts."""
    if TOLD.encode() not in event:
        return event
    plain = json.loads(event.removeprefix(b"data: "))
    for choice in plain["choices"]:
        told = choice["delta"].pop(TOLD)
        choice["delta"]["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": told}]}]
    return sse(plain)


def vendor_model(vendor: str, script: Script | ScriptedModel, *, keys: tuple[str, ...] = (KEY,)) -> ModelServer:
    """A server of chat completions with this vendor's rules, not yet served."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    return ModelServer(RuledWire(RULES.get(vendor, Rules())), model, keys=keys)
