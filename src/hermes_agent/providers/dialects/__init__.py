"""Table of API dialects: name to implementation, each loaded on first use."""

from __future__ import annotations

from hermes_agent.host.late import late
from hermes_agent.providers.dialect import Dialect

DIALECTS: dict[str, str] = {
    "openai_chat": "hermes_agent.providers.dialects.openai_chat:DIALECT",
    "openai_responses": "hermes_agent.providers.dialects.openai_responses:DIALECT",
    "anthropic": "hermes_agent.providers.dialects.anthropic:DIALECT",
    "gemini": "hermes_agent.providers.dialects.gemini:DIALECT",
    "bedrock": "hermes_agent.providers.dialects.bedrock:DIALECT",
}


def dialect_of(name: str) -> Dialect:
    """A dialect of the table."""
    dialect: Dialect = late(DIALECTS[name])
    return dialect
