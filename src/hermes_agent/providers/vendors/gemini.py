"""Google's Gemini API."""

from __future__ import annotations

from hermes_agent.providers.vendor import Vendor

VENDOR = Vendor(
    name="gemini",
    title="Google Gemini",
    dialect="gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    keys_at="https://aistudio.google.com/apikey",
    base_url_env="GEMINI_BASE_URL",
    default_model="gemini-3.8-flash",
)
