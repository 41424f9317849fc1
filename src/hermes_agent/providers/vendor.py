"""A vendor: the facts of one place that answers model requests. What differs between vendors is data, never a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Level = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
LEVELS: tuple[Level, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
ReasoningField = Literal["", "reasoning", "reasoning_content", "reasoning_details"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """Where a vendor departs from its dialect.

    `reasoning_field` names the field in which a model's own reasoning goes back to it; empty: it is not sent back.
    `effort_field` is where the reasoning level is written: `reasoning_effort` as text, `reasoning` as an object, empty
    where the vendor takes none. `stream_usage` False: `stream_options` is refused. `cache_key` True: a key per
    session steers requests to the machine that has the prefix. `reports_cost` True: the usage holds US dollars.
    `output_limit` False: a request may not limit the reply. `instructions` stands in for a missing system prompt where
    a vendor wants one. `chains` True: the vendor keeps its responses, and a request names the last one instead of
    repeating the conversation.
    """

    reasoning_field: ReasoningField = ""
    effort_field: Literal["", "reasoning_effort", "reasoning"] = ""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    stream_usage: bool = True
    cache_key: bool = False
    reports_cost: bool = False
    output_limit: bool = True
    instructions: str = ""
    chains: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One place that answers model requests.

    `base_url` ends before the dialect's path (`/chat/completions`, `/v1/messages`) and has no slash at its end;
    empty: it must be configured. `key_names` are the names under which a key is looked for, in order; `base_url_env`
    the name under which another address is. `default_model` is asked where a person named none; empty: one must be
    named. `window_probe` names a coroutine (`module:attribute`) that asks the server for the model's real window.
    `free` says that requests cost nothing.
    """

    name: str
    title: str
    dialect: str
    base_url: str = ""
    key_names: tuple[str, ...] = ()
    base_url_env: str = ""
    needs_key: bool = True
    default_model: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    quirks: Quirks = field(default_factory=Quirks)
    window_probe: str = ""
    server: str = ""
    free: bool = False
