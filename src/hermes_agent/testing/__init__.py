"""Test doubles shipped with the package: scripted models, model servers with faults, a clock, an execution place, chat
platforms."""
