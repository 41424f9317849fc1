"""Anthropic's API."""

from __future__ import annotations

from hermes_agent.providers.vendor import Vendor

VENDOR = Vendor(
    name="anthropic",
    title="Anthropic",
    dialect="anthropic",
    base_url="https://api.anthropic.com",
    key_names=("ANTHROPIC_API_KEY",),
    keys_at="https://platform.claude.com/settings/keys",
    base_url_env="ANTHROPIC_BASE_URL",
    sign_in="hermes_agent.providers.signin.anthropic:SIGN_IN",
    default_model="claude-opus-5-5",
)
