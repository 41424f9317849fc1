"""Google's Vertex AI: Gemini in a project of Google Cloud, with Google's own credentials instead of a key."""

from __future__ import annotations

from hermes_agent.providers.vendor import Vendor

# https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations
LOCATIONS = (
    "us-central1",
    "us-east1",
    "us-east4",
    "us-east5",
    "us-south1",
    "us-west1",
    "us-west4",
    "northamerica-northeast1",
    "southamerica-east1",
    "europe-west1",
    "europe-west2",
    "europe-west3",
    "europe-west4",
    "europe-west6",
    "europe-west8",
    "europe-west9",
    "europe-central2",
    "europe-north1",
    "europe-southwest1",
    "asia-east1",
    "asia-east2",
    "asia-northeast1",
    "asia-northeast3",
    "asia-south1",
    "asia-southeast1",
    "australia-southeast1",
    "me-central1",
    "me-central2",
    "me-west1",
)
PATH = "/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations"
GLOBAL = f"https://aiplatform.googleapis.com{PATH}/global/publishers/google"

VENDOR = Vendor(
    name="vertex",
    title="Google Vertex AI",
    dialect="gemini",
    base_url=GLOBAL,
    regions={
        "global": GLOBAL,
        **{place: f"https://{place}-aiplatform.googleapis.com{PATH}/{place}/publishers/google" for place in LOCATIONS},
    },
    region_names=("GOOGLE_CLOUD_LOCATION",),
    region="global",
    base_url_env="VERTEX_BASE_URL",
    sign="hermes_agent.providers.signing.google:sign",
    sign_traces=("GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"),
    needs_key=False,
    default_model="gemini-3.8-flash",
    catalogue="gemini",
)
