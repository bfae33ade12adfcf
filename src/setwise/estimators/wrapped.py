"""What a meta estimator passes between its caller and the estimator it holds."""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any

from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_sample_weight

from setwise.targets.measure import Array


def gives_probability(meta: Any) -> bool:
    """Whether the estimator has `predict_proba`; the condition of `available_if`."""
    return hasattr(getattr(meta, "estimator_", meta.estimator), "predict_proba")


def require_classifier(estimator: Any) -> None:
    """Raise unless the estimator is an object with `fit` and `predict_proba`."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise ValueError(
            f"estimator must be a classifier such as RandomForestClassifier(), not {estimator!r}"
        )
    # Stacking without a final estimator makes its own in fit; only then it has probabilities.
    if not hasattr(estimator, "predict_proba") and not _to_be_stacked(estimator):
        raise ValueError(
            f"estimator must have predict_proba, but {estimator!r} has none; wrap it in "
            f"CalibratedClassifierCV, or choose parameters with which it gives probabilities"
        )


def _to_be_stacked(estimator: Any) -> bool:
    return hasattr(estimator, "final_estimator") and estimator.final_estimator is None


def seeded(estimator: Any, random_state: Any) -> Any:
    """A clone whose parts with random_state=None have seeds; with None, nothing is changed."""
    copy: Any = clone(estimator)
    if random_state is None:
        return copy
    generator = check_random_state(random_state)
    given = sorted(copy.get_params(deep=True).items(), key=lambda item: item[0])
    unset = [
        name
        for name, value in given
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    copy.set_params(**{name: int(generator.randint(2**31 - 1)) for name in unset})
    return copy


def weights_of(sample_weight: Any, rows: Any) -> Array:
    """A weight for each row, none negative and not all 0; ones if there are none."""
    return _check_sample_weight(sample_weight, rows, ensure_non_negative=True)


def routed(meta: Any, rows: Any, sample_weight: Any, fit_params: dict) -> tuple[dict, dict]:
    """What the estimator's `fit`, and the splitter's `split`, are handed beside X and y.

    With metadata routing enabled, what they have requested; otherwise everything goes to `fit`.
    """
    params = dict(fit_params)
    if sample_weight is not None:
        params["sample_weight"] = weights_of(sample_weight, rows)
    if get_config()["enable_metadata_routing"]:
        found = process_routing(meta, "fit", **params)
        return dict(found.estimator.fit), dict(found.get("splitter", {}).get("split", {}))
    if sample_weight is not None and not _takes(meta.estimator.fit, "sample_weight"):
        raise ValueError(
            f"{type(meta.estimator).__name__}.fit takes no sample_weight, so none can be passed on"
        )
    return params, {}


def _takes(function: Any, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def routing(meta: Any) -> MetadataRouter:
    """Everything handed to `fit` goes to the estimator's `fit`."""
    return MetadataRouter(owner=meta).add(
        estimator=meta.estimator,
        method_mapping=MethodMapping().add(caller="fit", callee="fit"),
    )


def last_estimator(estimator: Any) -> Any:
    """The estimator at the end of pipelines and searches."""
    while isinstance(estimator, Pipeline | BaseSearchCV):
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[-1][1]
        else:
            estimator = getattr(estimator, "best_estimator_", estimator.estimator)
    return estimator


def takes_label_matrix(estimator: Any) -> bool:
    """Whether the estimator's tags say that y may have several columns.

    OneVsRestClassifier's do not, though it may.
    """
    if isinstance(last_estimator(estimator), OneVsRestClassifier):
        return True
    tags = get_tags(estimator)
    several = tags.classifier_tags is not None and tags.classifier_tags.multi_label
    return bool(several or tags.target_tags.multi_output)


def pass_tags(tags: Any, estimator: Any) -> None:
    """Say of X, and of how well it can be learnt, what the estimator says."""
    inner = get_tags(estimator)
    tags.input_tags = deepcopy(inner.input_tags)
    tags.non_deterministic = inner.non_deterministic
    tags.no_validation = inner.no_validation
    if inner.classifier_tags is not None:
        tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        tags.classifier_tags.multi_class = inner.classifier_tags.multi_class


def pass_features(meta: Any) -> None:
    """Take over what the fitted estimator knows of the columns of X."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(meta.estimator_, name):
            setattr(meta, name, getattr(meta.estimator_, name))
        elif hasattr(meta, name):
            delattr(meta, name)
