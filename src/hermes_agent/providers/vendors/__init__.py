"""The table of vendors: name to facts, each loaded only when it is used. Its order is the order of first choice."""

from __future__ import annotations

VENDORS: dict[str, str] = {
    "anthropic": "hermes_agent.providers.vendors.anthropic:VENDOR",
    "openai": "hermes_agent.providers.vendors.openai:VENDOR",
    "openrouter": "hermes_agent.providers.vendors.openrouter:VENDOR",
    "ollama": "hermes_agent.providers.vendors.ollama:VENDOR",
    "custom": "hermes_agent.providers.vendors.custom:VENDOR",
    "demo": "hermes_agent.providers.vendors.demo:VENDOR",
}
