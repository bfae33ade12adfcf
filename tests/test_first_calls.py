"""The law of what is compiled in advance: first calls ask for nothing else."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

# A new process asks for each kernel once. After the trials, those of a first call were asked for.
ASKED = """
import warnings
warnings.simplefilter("ignore")
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from benchmarks.waiting import ESTIMATORS, TARGETS
from setwise import SetClassifier, SetClassifierCV, TargetDecoder, first_calls, kernel_cache
from setwise.targets import TreeDistance
from setwise.targets.registry import AVERAGED, AVERAGES, TARGETS as NAMES

first_calls.compile_all(lambda told: None)
load = kernel_cache._Cache.load_overload

def asked(cache, signature, context):
    print(cache._name, signature, "for", name, target)
    return load(cache, signature, context)

kernel_cache._Cache.load_overload = asked
X, Y = first_calls.table()
means = [name.replace("?", part) for name in AVERAGES for part in AVERAGED]
every = [name.replace("*", "2") for name in (*NAMES, *means)]
for name, model in ESTIMATORS.items():
    for target in TARGETS if name.endswith("CV") else {*TARGETS, *every}:
        eval(model).fit(X, Y).predict(X[:5])
    target = TreeDistance(first_calls.PARENTS)
    if "sized" not in name:
        eval(model).fit(X, first_calls.closed(Y)).predict(X[:5])
"""
NETWORKS = """
import torch
from setwise.nn import ExpectedLoss, SurrogateLoss
logits, truth = torch.zeros(8, 6, requires_grad=True), torch.zeros(8, 6)
for name in (ExpectedLoss, SurrogateLoss):
    for target in ("f1", "jaccard", "hamming", "subset"):
        name(target)(logits, truth).backward()
"""


def test_after_the_trials_first_calls_need_no_other_kernels():
    """Of every registered target, and of a hierarchy."""
    code = ASKED + (NETWORKS if find_spec("torch") else "")
    call, root = [sys.executable, "-c", code], Path(__file__).parents[1]
    done = subprocess.run(call, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
