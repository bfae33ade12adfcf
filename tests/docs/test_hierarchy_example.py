"""The example of hierarchies does what it says."""

import importlib.util
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "hierarchy.py"


def test_the_example_of_hierarchies_is_nearer_than_one_label_at_a_time(capsys):
    spec = importlib.util.spec_from_file_location("hierarchy_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figures = module.main(n_train=600, n_test=600)
    near, flat = figures["tree distance"], figures["one label at a time, closed"]
    assert near["tree distance"].value < flat["tree distance"].value
    assert near["closed predictions"].value == 1.0
    assert "edges [" in capsys.readouterr().out
