"""Settings of the test run: how many examples hypothesis draws."""

import os

from hypothesis import HealthCheck, settings

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "quick", deadline=None, max_examples=6, suppress_health_check=SLOW_IS_FINE
)
settings.register_profile(
    "ci", parent=settings.get_profile("quick"), derandomize=True, print_blob=True
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=200)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick")
)
