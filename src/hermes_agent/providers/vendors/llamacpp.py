"""llama.cpp's `llama-server`, on this machine unless said otherwise."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="llamacpp",
    title="llama.cpp",
    dialect="openai_chat",
    base_url="http://127.0.0.1:8080/v1",
    key_names=("LLAMA_API_KEY",),
    base_url_env="LLAMACPP_BASE_URL",
    needs_key=False,
    quirks=Quirks(reasoning_field="reasoning_content", prefill="last"),
    window_probe="hermes_agent.providers.windows:llamacpp_window",
    free=True,
)
