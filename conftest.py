"""The examples in docstrings of `setwise.nn` run where PyTorch is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/setwise/nn/*"]
