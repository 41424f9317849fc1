"""Kinds of place, one file each: local, container, SSH, Apptainer."""
