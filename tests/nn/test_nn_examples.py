"""The examples of `setwise.nn` do what they say: plain loop, Hugging Face, skorch, processes."""

import importlib.util
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

EXAMPLES = Path(__file__).parents[2] / "examples"
EMOTIONS = EXAMPLES.parents[1] / "shared" / "data" / "emotions"


@pytest.fixture
def example(monkeypatch):
    """A function that loads an example by name, as Python does when it runs the file."""
    monkeypatch.syspath_prepend(EXAMPLES)

    def load(name: str):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_the_plain_loop_gains_f1_over_cross_entropy(example):
    figures = example("plain_loop").main(epochs=10)
    assert figures["expected F1 loss"] > figures["cross-entropy"] + 0.02


@pytest.mark.skipif(not EMOTIONS.exists(), reason="needs ../shared/data/emotions")
def test_the_plain_loop_gains_f1_on_real_data(example):
    figures = example("plain_loop").main(EMOTIONS, epochs=15)
    assert figures["expected F1 loss"] > figures["cross-entropy"]


@pytest.mark.parametrize("seed", range(5))
def test_a_small_network_gains_f1_over_cross_entropy_at_one_half(example, seed):
    """The law of `benchmarks/networks.py` over five seeds, with fewer steps."""
    loop = example("plain_loop")
    x, y, x_test, y_test = loop.known_truth(seed)
    f1 = [
        loop.instance_f1(loop.train(loss, x, y, epochs=5, seed=seed), x_test, y_test)
        for loss in (loop.ExpectedLoss("f1"), torch.nn.BCEWithLogitsLoss())
    ]
    assert f1[0] > f1[1]


def test_skorch_takes_the_loss_as_a_criterion(example):
    pytest.importorskip("skorch")
    figures = example("skorch_net").main(epochs=5)
    assert figures["expected F1 loss"] > figures["cross-entropy"]


# Trainer and its libraries have warnings of their own.
@pytest.mark.filterwarnings("ignore")
def test_a_hugging_face_trainer_learns_with_the_loss(example, capsys):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    before, after = example("hugging_face").main()
    assert after > 0.8 > before


@pytest.mark.filterwarnings("ignore")
def test_accumulated_batches_have_the_loss_of_all_their_rows(example):
    pytest.importorskip("transformers")
    face = example("hugging_face")
    logits = torch.randn(10, 5, generator=torch.Generator().manual_seed(0))
    labels = (logits > 0.3).float()

    class Outputs:
        def __init__(self, part):
            self.logits = part

    parts = [
        face.compute_loss(Outputs(logits[rows]), labels[rows], num_items_in_batch=labels.numel())
        for rows in (slice(0, 3), slice(3, 10))
    ]
    torch.testing.assert_close(sum(parts), face.compute_loss(Outputs(logits), labels))


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, which wait
def test_two_processes_get_the_gradients_of_one(example):
    """Forked, which imports nothing again."""
    assert example("ddp").main("fork") < 1e-5
