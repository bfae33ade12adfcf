"""`python -m setwise` is the command `setwise`."""

import sys

INTERRUPTED = 130


def run() -> int:
    """The command, whose status is 130 at whatever moment it is interrupted."""
    try:
        from setwise.cli import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
