"""Ollama on this machine, through its OpenAI-like address."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="ollama",
    title="Ollama",
    dialect="openai_chat",
    base_url="http://127.0.0.1:11434/v1",
    key_names=("OLLAMA_API_KEY",),
    base_url_env="OLLAMA_BASE_URL",
    needs_key=False,
    quirks=Quirks(reasoning_field="reasoning", prefill="last"),
    window_probe="hermes_agent.providers.windows:ollama_window",
    free=True,
)
