"""Every method, every peer, every measure, on the same rows: `python -m benchmarks.evidence`."""
