"""Labels: each by itself, which come together, and how many a row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import triu

from setwise.report.drawing import Style, line, picture, rectangle, room_for, text
from setwise.report.material import Material
from setwise.report.probability import FRAME
from setwise.report.words import clipped, count, isolated, plain, share

# The table holds all labels up to this many numbers in the page, else the most frequent ones.
MOST_ROWS, LEAST_LABELS = 100_000, 500
# Curves of labels take this many characters of the page at most: each point two, on a grid.
CURVE_CHARACTERS = 300_000
RECALLS = np.linspace(0.0, 1.0, 26)
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def labels(material: Material) -> dict[str, Any] | None:
    """How many labels the table has; its numbers are in `label_data`."""
    shown = len(_most_frequent(material))
    return {"n_shown": shown, "n_labels": material.board.n_labels} if material.shown else None


def _most_frequent(material: Material) -> Any:
    """The labels of the table, most frequent first."""
    most = max(MOST_ROWS // max(1, len(material.shown)), LEAST_LABELS)
    return np.argsort(-material.support, kind="stable")[:most]


def label_data(material: Material) -> dict[str, Any]:
    """Numbers for the page's script: counts of each label and outcome, and curves.

    Precision, recall and F1 follow from the counts; average precision is in ten-thousandths, and -1
    for a label that is never true. ``first`` is the outcome shown first, the best of its target.
    """
    if not material.shown:
        return {}
    results = material.results
    shown = _most_frequent(material)
    support = material.support[shown]
    titles = {target: measure.title for target, measure in material.measures.items()}
    titles |= {panel.target: panel.title for panel in material.panels}
    budget = max(1, CURVE_CHARACTERS // (2 * len(RECALLS) * max(1, len(material.beliefs))))
    best = material.board[0]
    pairs = [(outcome.method, outcome.target) for outcome, _ in material.shown]
    averages = [belief.by_label.average_precision[shown] for belief in material.beliefs]
    return {
        "methods": [
            [plain(method), style.colour, style.shape, style.dash]
            for method, style in material.styles.items()
        ],
        "targets": [titles[target] for target in results.targets],
        "labels": [plain(results.label_names[label]) for label in shown],
        "support": support.tolist(),
        "outcomes": [
            {
                "method": results.methods.index(outcome.method),
                "target": results.targets.index(outcome.target),
                "predicted": figures.predicted[shown].tolist(),
                "both": figures.both[shown].tolist(),
                "belief": material.belief_of(outcome),
            }
            for outcome, figures in material.shown
        ],
        "beliefs": [
            {
                "average": np.where(support > 0, np.rint(1e4 * average), -1).astype(int).tolist(),
                "curves": _packed(belief.by_label.interpolated(RECALLS)[shown[:budget]]),
            }
            for belief, average in zip(material.beliefs, averages, strict=True)
        ],
        "frame": [FRAME.across.start, FRAME.across.end, FRAME.up.start, FRAME.up.end],
        "first": pairs.index((best.method, best.target)),
    }


def _packed(precision: Any) -> list[str]:
    """Each row of precisions as text: 4095ths in two digits of base 64."""
    levels = np.rint(4095 * precision).astype(int)
    digits = np.array(list(DIGITS))
    pairs = np.stack([digits[levels // 64], digits[levels % 64]], axis=-1)
    return ["".join(row) for row in pairs.reshape(len(levels), -1).tolist()]


MOST_LABELS, MOST_PAIRS = 30, 12
# Pairs are looked for among so many labels, the most frequent.
MOST_PAIRED = 1_000
PAIR_LETTERS = 24


def cooccurrence(material: Material) -> dict[str, Any] | None:
    """The picture and the pairs; nothing for a single label."""
    support = material.support
    frequent = np.argsort(-support, kind="stable")[:MOST_LABELS]
    frequent = frequent[support[frequent] > 0]
    if len(frequent) < 2:
        return None
    together = _together(material, frequent).toarray()
    # An order in which labels that come together are neighbours.
    own = together.diagonal()
    apart = 1.0 - together / (own[:, None] + own - together)
    tree = linkage(apart[np.triu_indices(len(own), 1)], "average", optimal_ordering=True)
    order = leaves_list(tree)
    names = [plain(material.results.label_names[label]) for label in frequent[order]]
    return {
        "picture": _pairs_picture(together[np.ix_(order, order)], names),
        "pairs": _pairs(material),
        "n_shown": len(frequent),
        "n_labels": len(support),
    }


def _together(material: Material, labels: Any) -> Any:
    """In how many rows each pair of some labels is true, sparse."""
    y_true = material.results.y_true[:, labels].astype(np.int64)
    return y_true.T @ y_true


def _pairs_picture(together: Any, names: list[str]) -> Any:
    """A square for each pair, the larger the more often the row's label brings the column's."""
    n = len(names)
    cell = 19.0 if n > 16 else 26.0
    top, left, side = 14.0, room_for(names, PAIR_LETTERS) + 10, cell * n
    middles = [cell * (i + 0.5) for i in range(n)]
    parts = [
        rectangle(left, top, side, side, "frame"),
        text("rows", left + side + 8, top - 3, "tick"),
    ]
    for i, (row, y) in enumerate(zip(together.tolist(), middles, strict=True)):
        parts.append(text(names[i], left - 8, top + y + 4, "name end", PAIR_LETTERS))
        parts.append(text(count(row[i]), left + side + 8, top + y + 4, "tick"))
        for j, (both, x) in enumerate(zip(row, middles, strict=True)):
            part = both / row[i]
            size = 3.0 if i == j else max((cell - 2) * part**0.5, 1.5)
            corner = left + x - size / 2, top + y - size / 2
            tip = (
                f"{share(part, 2)} of the {count(row[i])} rows with "
                f"{isolated(clipped(names[i], 40))} have {isolated(clipped(names[j], 40))}"
            )
            if i == j:
                parts.append(rectangle(*corner, size, size, "self"))
            elif both:
                parts.append(rectangle(*corner, size, size, "pair", tip))
    for label, x in zip(names, middles, strict=True):
        turned = f"translate({left + x + 4:.1f} {top + side + 8:.1f}) rotate(-90)"
        parts.append(text(label, None, None, "name end", PAIR_LETTERS, transform=turned))
    title = f"How often each of {n} labels comes with each other one; the closest pairs follow"
    return picture(left + side + 60, top + side + left, title, *parts)


def _pairs(material: Material) -> list[dict[str, Any]]:
    """The pairs of labels most often in one row, and how much more often than by chance."""
    paired = np.sort(np.argsort(-material.support, kind="stable")[:MOST_PAIRED])
    pairs: Any = triu(_together(material, paired), 1).tocoo()
    first = np.lexsort((pairs.col, pairs.row, -pairs.data))[:MOST_PAIRS]
    found = []
    for place in first:
        a, b, both = paired[pairs.row[place]], paired[pairs.col[place]], pairs.data[place]
        of_a, of_b = material.support[a], material.support[b]
        names = [material.results.label_names[label] for label in (a, b)]
        lift = both * material.board.n_rows / (of_a * of_b)
        found.append((names, both, both / of_a, both / of_b, lift))
    return found


# No more bars than these: where sizes are many, several share one.
MOST_BARS = 13
# Sizes above this share of all, of rows or of a method's predictions, are taken together.
COMMON = 0.99
WIDTH, HEIGHT, TOP, BOTTOM, LEFT = 190.0, 128.0, 8.0, 106.0, 4.0


def bars_of(samples: Sequence[Any]) -> tuple[Any, list[str]]:
    """The smallest size of each bar, and its sizes in words; few bars hold nearly all sizes.

    Bars are of equally many sizes, but the last one may hold all that are larger.
    """
    top = max(1, *(int(np.quantile(own, COMMON, method="higher")) for own in samples))
    width = top // MOST_BARS + 1
    starts = width * np.arange(top // width + 1)
    names = [f"{start}–{start + width - 1}" if width > 1 else f"{start}" for start in starts]
    if any(own.max() >= starts[-1] + width for own in samples):
        names[-1] = f"{starts[-1]}+"
    return starts, names


def shares_of(sizes: Any, starts: Any) -> Any:
    """The share of the sizes that each bar holds."""
    return np.bincount(np.digitize(sizes, starts) - 1, minlength=len(starts)) / len(sizes)


def sizes(material: Material) -> dict[str, Any] | None:
    """Of true and of predicted label sets the mean and the shares, and pictures, by target."""
    if not material.shown:
        return None
    outcomes = material.results.outcomes
    samples = [
        np.asarray(sets.sum(axis=1)).ravel().astype(int)
        for sets in (material.results.y_true, *(outcome.y_pred for outcome in outcomes))
    ]
    starts, names = bars_of(samples)
    true, *shares = (shares_of(own, starts) for own in samples)
    highest = max(float(own.max()) for own in (true, *shares))
    drawn: dict[str, list[Any]] = {}
    for outcome, sizes, own in zip(outcomes, samples[1:], shares, strict=True):
        shown = _sizes_picture(names, true, own, highest, material.styles[outcome.method])
        drawn.setdefault(outcome.target, []).append((outcome.method, sizes.mean(), own, shown))
    return {
        "panels": [{"title": own.title, "methods": drawn[own.target]} for own in material.panels],
        "bars": names,
        "true_mean": samples[0].mean(),
        "true_shares": true,
    }


def _sizes_picture(
    names: list[str], true: Any, predicted: Any, highest: float, style: Style
) -> Any:
    """Bars of the true sizes, and the method's marks upon them."""
    step, scale = (WIDTH - 2 * LEFT) / len(true), (BOTTOM - TOP) / highest
    every = max(1, -(-len(true) // 9))
    parts = []
    for place, (bar, dot) in enumerate(zip(true.tolist(), predicted.tolist(), strict=True)):
        x, y = LEFT + step * place, BOTTOM - scale * dot
        tall = scale * bar
        parts.append(rectangle(x + step * 0.14, BOTTOM - tall, step * 0.72, tall, "true"))
        tip = f"size {names[place]}: true {share(bar, 2)}, predicted {share(dot, 2)}"
        parts.append(line(x + step * 0.04, y, x + step * 0.96, y, f"level {style.colour}", tip))
        if place % every == 0:
            first = names[place].split("–")[0]
            parts.append(text(first, x + step / 2, BOTTOM + 16, "tick middle"))
    parts.append(line(LEFT, BOTTOM, WIDTH - LEFT, BOTTOM, "base"))
    return picture(WIDTH, HEIGHT, "Shares of label-set sizes, true and predicted", *parts)
