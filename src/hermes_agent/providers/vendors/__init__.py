"""The table of vendors: name to facts, each loaded only when it is used. Its order is the order of first choice."""

from __future__ import annotations

VENDORS: dict[str, str] = {
    "anthropic": "hermes_agent.providers.vendors.anthropic:VENDOR",
    "openai": "hermes_agent.providers.vendors.openai:VENDOR",
    "openai-codex": "hermes_agent.providers.vendors.openai_codex:VENDOR",
    "openrouter": "hermes_agent.providers.vendors.openrouter:VENDOR",
    "gemini": "hermes_agent.providers.vendors.gemini:VENDOR",
    "vertex": "hermes_agent.providers.vendors.vertex:VENDOR",
    "bedrock": "hermes_agent.providers.vendors.bedrock:VENDOR",
    "mistral": "hermes_agent.providers.vendors.mistral:VENDOR",
    "azure": "hermes_agent.providers.vendors.azure:VENDOR",
    "xai": "hermes_agent.providers.vendors.xai:VENDOR",
    "deepseek": "hermes_agent.providers.vendors.deepseek:VENDOR",
    "groq": "hermes_agent.providers.vendors.groq:VENDOR",
    "together": "hermes_agent.providers.vendors.together:VENDOR",
    "fireworks": "hermes_agent.providers.vendors.fireworks:VENDOR",
    "nous": "hermes_agent.providers.vendors.nous:VENDOR",
    "kimi": "hermes_agent.providers.vendors.kimi:VENDOR",
    "minimax": "hermes_agent.providers.vendors.minimax:VENDOR",
    "zai": "hermes_agent.providers.vendors.zai:VENDOR",
    "qwen": "hermes_agent.providers.vendors.qwen:VENDOR",
    "huggingface": "hermes_agent.providers.vendors.huggingface:VENDOR",
    "nvidia": "hermes_agent.providers.vendors.nvidia:VENDOR",
    "ollama": "hermes_agent.providers.vendors.ollama:VENDOR",
    "lmstudio": "hermes_agent.providers.vendors.lmstudio:VENDOR",
    "vllm": "hermes_agent.providers.vendors.vllm:VENDOR",
    "llamacpp": "hermes_agent.providers.vendors.llamacpp:VENDOR",
    "custom": "hermes_agent.providers.vendors.custom:VENDOR",
    "moa": "hermes_agent.providers.vendors.moa:VENDOR",
    "demo": "hermes_agent.providers.vendors.demo:VENDOR",
}
