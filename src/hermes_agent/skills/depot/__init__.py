"""The unchanged files of skills from elsewhere and of originals that were copied, and which of them are used."""

from __future__ import annotations

HUB = ".hub"
"""The folder of what comes from elsewhere, in the home's skills."""
STORE = "store"
