"""Table of API dialects: name to implementation, each loaded on first use."""

from __future__ import annotations

DIALECTS: dict[str, str] = {
    "openai_chat": "hermes_agent.providers.dialects.openai_chat:DIALECT",
    "openai_responses": "hermes_agent.providers.dialects.openai_responses:DIALECT",
    "anthropic": "hermes_agent.providers.dialects.anthropic:DIALECT",
    "gemini": "hermes_agent.providers.dialects.gemini:DIALECT",
    "bedrock": "hermes_agent.providers.dialects.bedrock:DIALECT",
}
