"""Whether tests take their time: see `make test-deep`."""

import os

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
