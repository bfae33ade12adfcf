"""What is guaranteed: exact regrets, bounds, certificates and counterexamples.

On small spaces and finite distributions everything is exact: conditional risks, best label sets,
regrets of targets and surrogates. `certify` says whether a surrogate is consistent for a target,
with the theorem that says so or a distribution that shows it is not. `known_truth` makes data whose
p(y | x) is known.
"""

from setwise.consistency.best_scores import Optimum
from setwise.consistency.bounds import Gamma, bound
from setwise.consistency.certify import certify, examine
from setwise.consistency.distribution import Distribution
from setwise.consistency.proofs import THEOREMS, Theorem
from setwise.consistency.regret import (
    bayes,
    best_in_class,
    regret,
    risks,
    surrogate_regret,
    surrogate_risk,
)
from setwise.consistency.search import Effort
from setwise.consistency.verdicts import (
    Certificate,
    Counterexample,
    Undecided,
    from_dict,
    to_json,
)

__all__ = [
    "THEOREMS",
    "Certificate",
    "Counterexample",
    "Distribution",
    "Effort",
    "Gamma",
    "Optimum",
    "Theorem",
    "Undecided",
    "bayes",
    "best_in_class",
    "bound",
    "certify",
    "examine",
    "from_dict",
    "regret",
    "risks",
    "surrogate_regret",
    "surrogate_risk",
    "to_json",
]
