"""OpenAI's models for those who sign in with ChatGPT, as Codex asks them; a subscription pays."""

from __future__ import annotations

from hermes_agent.providers.vendor import Quirks, Vendor

VENDOR = Vendor(
    name="openai-codex",
    title="OpenAI Codex (ChatGPT)",
    dialect="openai_responses",
    base_url="https://chatgpt.com/backend-api/codex",
    base_url_env="OPENAI_CODEX_BASE_URL",
    sign_in="hermes_agent.providers.signin.openai:SIGN_IN",
    default_model="gpt-6-sol",
    headers=(("OpenAI-Beta", "responses=experimental"),),
    quirks=Quirks(cache_key=True, output_limit=False, stores=False, instructions="You are a helpful agent."),
    free=True,
)
