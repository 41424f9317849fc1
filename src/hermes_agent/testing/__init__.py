"""Fakes that ship: scripted models, model servers on loopback, a clock and a place that tests decide."""
