"""A vLLM server, on this machine unless said otherwise."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="vllm",
    title="vLLM",
    dialect="openai_chat",
    base_url="http://127.0.0.1:8000/v1",
    key_names=("VLLM_API_KEY",),
    base_url_env="VLLM_BASE_URL",
    needs_key=False,
    quirks=Quirks(reasoning_field="reasoning_content", prefill="continue"),
    window_probe="hermes_agent.providers.windows:vllm_window",
    free=True,
)
