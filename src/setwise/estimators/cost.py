"""What a joint likelihood would cost, and what is trained where it costs too much.

Estimated before any work, from the shape of the data alone. The solver holds about a dozen arrays
of features by labels, and the pairs of vectors it remembers; a pass over the data takes the
products with the inputs, and a sum over the listed sets or over the sizes of sets. What does not
fit into a quarter of the memory of the machine (or of its control group), or takes more than
`MOST_OPERATIONS` a pass, is not begun: in place of the list of seen sets, all sets by their size;
in place of a joint likelihood, every label by itself (binary relevance).
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from setwise.estimators.choice import MOST_UNSEEN, set_counts, unseen_mass
from setwise.estimators.solver import remembered
from setwise.sparse import set_sizes
from setwise.targets.target import Target, hierarchy_of

# The share of the memory that a fit may take.
SHARE = 0.25
# Operations of a pass over the data: a minute or so, and a fit takes dozens of passes.
MOST_OPERATIONS = 1e11
# Arrays of features by labels beside the pairs that the solver remembers.
ARRAYS = 14
# What an entry of sparse inputs costs by one of dense ones.
SPARSE = 8
# Bytes of memory where the system does not say.
ASSUMED = 2**33
CONTROL_GROUPS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


class Plan(NamedTuple):
    """The surrogate and the space to train, and why it is not the usual one, if it is not."""

    surrogate: Any
    space: Any
    reason: str | None = None


def is_auto(given: Any) -> bool:
    """Whether a setting was left to us."""
    return isinstance(given, str) and given == "auto"


def memory() -> int:
    """Bytes of memory of the machine, or of the control group of this process if that has less."""
    limits = []
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in CONTROL_GROUPS:
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        limits += [int(text)] if text.isdigit() else []
    return min(limits, default=ASSUMED)


def affordable(rows: Any) -> Plan:
    """What "auto" trains on rows, in memory or in blocks: the joint likelihood, if it fits."""
    n, d, sets, n_labels = rows.n_rows, rows.n_features, rows.sets, rows.sets.shape[1]
    products = 4.0 * (SPARSE if rows.is_sparse else 1) * rows.n_entries * n_labels
    size = d * n_labels
    needed = 8.0 * size * (2 * remembered(size) + ARRAYS)
    most = SHARE * memory()
    joint = f"a model of all {n_labels} labels together, by {d} features,"
    alone = "so every label is trained by itself (binary relevance)"
    if needed > most:
        share = f"a quarter of the memory there is, {most / 1e9:.1f} GB"
        reason = f"{joint} would take about {needed / 1e9:.1f} GB, more than {share}, {alone}"
        return Plan("binary_relevance", "auto", reason)
    by_size = products + 8.0 * n * n_labels * int(set_sizes(sets).max(initial=1))
    if by_size > MOST_OPERATIONS:
        reason = f"{joint} would take about {by_size:.0e} operations a pass over the data, {alone}"
        return Plan("binary_relevance", "auto", reason)
    counts = set_counts(sets) if rows.counts is None else rows.counts
    if unseen_mass(sets, counts) > MOST_UNSEEN:
        return Plan("likelihood", "auto")
    n_sets = len(counts)
    listed = products + 4.0 * n * n_sets * n_labels
    if listed > MOST_OPERATIONS:
        return Plan(
            "likelihood", "sized",
            f"a list of the {n_sets} label sets seen would take about {listed:.0e} operations a "
            f"pass over the data, so all label sets are taken as possible, weighed by their size "
            f"('sized')",
        )  # fmt: skip
    return Plan("likelihood", "auto")


def planned(
    estimator: Any, surrogate: Any, space: Any, is_free: bool, rows: Any, target: Target
) -> Plan:
    """What is trained: what was asked for; of "auto" what fits, if it is free to choose.

    Says so by a warning, and in ``choice_`` of the estimator, where it is not the usual.
    """
    plan = Plan(surrogate, space)
    if is_auto(surrogate):
        free = is_free and hierarchy_of(target) is None
        plan = affordable(rows) if free else Plan("likelihood", space)
    estimator.choice_ = plan.reason
    if plan.reason is not None:
        warnings.warn(plan.reason, UserWarning, stacklevel=5)
    return plan
