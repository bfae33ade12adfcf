"""Settings of the test run: how many examples hypothesis draws, and that interrupts arrive."""

import os
import signal
import threading

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

# What a shell runs in the background ignores an interrupt, and so does all that it starts.
if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):
    signal.signal(signal.SIGINT, signal.default_int_handler)
