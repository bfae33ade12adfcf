"""The code of the guide to scaling runs."""

from pathlib import Path

import pytest

from tests.test_docs import run

GUIDE = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text()


@pytest.mark.filterwarnings("default")
def test_the_sections_of_rows_and_machines_run(tmp_path):
    pytest.importorskip("distributed")
    scope = run(GUIDE.split("## Very many labels")[0], {}, tmp_path, "docs/scaling.md")
    assert sum(len(part) for part in scope["parts"]) == 900
    assert scope["chosen"].best_params_["alpha"] > 0
