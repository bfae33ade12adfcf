"""How test runs share the processors; what is collected.

The examples in docstrings of `setwise.nn` run where PyTorch is installed.
"""

import os
from importlib.util import find_spec

# Test processes share the processors. Threads of matrix products and trees that wait for each other
# sleep then: by default they spin, which takes longer than what they compute. (Read at imports.)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# Workers of a Dask cluster are forked from one process that has imported what they need.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")

collect_ignore_glob = [] if find_spec("torch") else ["src/setwise/nn/*"]
