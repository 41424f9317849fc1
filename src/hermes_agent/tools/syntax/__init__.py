"""Reads shell commands as syntax trees: what they run, with which words, fed by what, writing where."""
