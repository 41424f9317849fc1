"""Amazon Bedrock: many makers' models in an account of AWS, with AWS credentials or a Bedrock key."""

from __future__ import annotations

from hermes_agent.providers.vendor import Vendor

# https://docs.aws.amazon.com/general/latest/gr/bedrock.html
REGIONS = (
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "us-gov-east-1",
    "us-gov-west-1",
    "af-south-1",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ca-central-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "il-central-1",
    "me-central-1",
    "sa-east-1",
)

VENDOR = Vendor(
    name="bedrock",
    title="Amazon Bedrock",
    dialect="bedrock",
    base_url="https://bedrock-runtime.us-east-1.amazonaws.com",
    regions={region: f"https://bedrock-runtime.{region}.amazonaws.com" for region in REGIONS},
    region_names=("AWS_REGION", "AWS_DEFAULT_REGION"),
    region="us-east-1",
    key_names=("AWS_BEARER_TOKEN_BEDROCK",),
    keys_at="https://console.aws.amazon.com/bedrock/home#/api-keys",
    base_url_env="BEDROCK_BASE_URL",
    sign="hermes_agent.providers.signing.aws:sign",
    sign_traces=(
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "~/.aws/credentials",
        "~/.aws/config",
    ),
    needs_key=False,
    default_model="global.anthropic.claude-opus-4-6-v1",
)
