"""Test doubles shipped with the package: scripted models, model servers, a clock, an execution place, a chat
platform."""
