"""The code of a page in Markdown, run as a reader would run it."""

import os
import re
import shlex
import subprocess
import sysconfig
from contextlib import chdir, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

from setwise.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCKS = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text, language="python"):
    """The blocks of a language, in their order."""
    return [block for own, block in BLOCKS.findall(text) if own == language]


def shell(text, folder):
    """What a shell block prints; every line of it has to succeed."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_process(text, folder):
    """What a block prints, line by line here, so that the interpreter need not start for each."""
    printed = []
    for line in text.splitlines():
        file, piped, line = line.removeprefix("cat ").rpartition(" | ")
        program, *words = shlex.split(line)
        if program == "pip":
            continue
        if program != "setwise":
            printed.append(shell(line, folder))
            continue
        given = TextIOWrapper(BytesIO((folder / file).read_bytes() if piped else b""))
        output = TextIOWrapper(BytesIO(), write_through=True)
        with chdir(folder), redirect_stdout(output), patch("sys.stdin", given):
            assert main(words) == 0, line
        printed.append(output.buffer.getvalue().decode())
    return "".join(printed)


def walk(text, folder, name="README.md", scope=None):
    """Every block of Python and shell, one after the other: what they leave and what they print.

    Blocks of ``py`` are Python too, of packages that are not there.
    """
    scope, printed = {} if scope is None else scope, []
    for language, block in BLOCKS.findall(text):
        if language == "python":
            with chdir(folder):
                exec(compile(block, name, "exec"), scope)
        elif language == "sh":
            printed.append(in_process(block, folder))
        else:
            assert language in ("", "text", "py") or language.startswith("{"), language
    return scope, printed
