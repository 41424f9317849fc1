"""Record of a vendor: the facts of a service that answers model requests. Differences between vendors are data; no
code compares names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from hermes_agent.core.dataclass import dataclass

Level = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
LEVELS: tuple[Level, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
USUAL_LEVEL: Level = "medium"
ReasoningField = Literal["", "reasoning", "reasoning_content", "reasoning_details", "thinking_parts"]
Body = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """Deviations of a vendor from its dialect.

    `reasoning_field` names the field in which a model's own reasoning is sent back to it (`thinking_parts`: as parts of
    the content); empty: it is not sent back. `effort_field` is where the reasoning level goes: `reasoning_effort` as
    text, `reasoning` as an object, empty where the vendor has none. `thinking_on` and `thinking_off` are extra fields
    of a request for a thinking model, `thinking_off` in place of a level. `stream_usage` False: `stream_options` is
    refused. `tool_choice` False: `tool_choice: none` is refused, so that tools are left out where they may not be used.
    `call_ids` `nine`: the id of a call is nine letters and digits. `reply_after_results` True: a user's message may
    follow a tool's only after an assistant's. `cache_key` True: a key per session steers requests to the machine that
    has the prefix cached. `reports_cost` True: the usage holds US dollars. `also` is part of every request.
    `output_limit` False: a request may not limit the reply. `instructions` replaces a missing system prompt where a
    vendor requires one. `prefill` says how the beginning of a reply is sent: as the last message (`last`), marked in
    it (`prefix`, `partial`), or with vLLM's fields (`continue`); empty: not at all. `cache_marks` are prefixes of model
    names whose prompts are cached only where a request says so; one mark then stands for the whole request.
    """

    reasoning_field: ReasoningField = ""
    effort_field: Literal["", "reasoning_effort", "reasoning"] = ""
    thinking_on: Body = field(default_factory=dict)
    thinking_off: Body = field(default_factory=dict)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    stream_usage: bool = True
    tool_choice: bool = True
    call_ids: Literal["", "nine"] = ""
    reply_after_results: bool = False
    cache_key: bool = False
    prefill: Literal["", "last", "prefix", "partial", "continue"] = ""
    cache_marks: tuple[str, ...] = ()
    reports_cost: bool = False
    output_limit: bool = True
    instructions: str = ""
    also: Body = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """A service that answers model requests.

    `base_url` ends before the dialect's path (`/chat/completions`, `/v1/messages`), without a final slash; empty:
    it must be configured, and `address` is an example. `regions` are further addresses by the name of a region
    (`model.region`, or the value of one of `region_names`); `region` is the default. `{NAME}` in an address is
    replaced from the environment or `.env`. `key_names` are the variables searched for a key, in order; `keys_at`
    is where a person gets one; `key_header` is the header for it, empty for the dialect's own. `base_url_env`
    names a variable with another address. `sign` names a coroutine (`module:attribute`) that authenticates a
    request without a key by headers; `sign_traces` are variables and files (`~/...`), one of which exists where
    that can work. `sign_in` names the OAuth sign-in that can replace a key (`module:attribute`).

    `default_model` is used where a person named none; empty: one must be named. `model_prefix` is put before
    names without a slash. `catalogue` names the vendor whose model facts apply where this one's are unknown.
    `window_probe` names a coroutine (`module:attribute`) that asks the server for a model's window.
    `free`: requests cost nothing. `mixes`: its models are mixtures of others (section `moa`).
    """

    name: str
    title: str
    dialect: str
    base_url: str = ""
    address: str = "http://127.0.0.1:8000/v1"
    regions: Mapping[str, str] = field(default_factory=dict)
    region_names: tuple[str, ...] = ()
    region: str = ""
    key_names: tuple[str, ...] = ()
    keys_at: str = ""
    key_header: Literal["", "api-key"] = ""
    base_url_env: str = ""
    sign: str = ""
    sign_traces: tuple[str, ...] = ()
    sign_in: str = ""
    needs_key: bool = True
    default_model: str = ""
    model_prefix: str = ""
    catalogue: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    quirks: Quirks = field(default_factory=Quirks)
    window_probe: str = ""
    mixes: bool = False
    server: str = ""
    free: bool = False
