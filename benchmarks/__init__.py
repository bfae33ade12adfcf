"""Measurements: what was computed beside how long it took. `python -m benchmarks --help`."""
