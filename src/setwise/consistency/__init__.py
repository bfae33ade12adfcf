"""What is guaranteed: exact regrets, bounds, certificates and counterexamples.

On small spaces and finite distributions everything is exact: conditional risks, best label sets,
regrets of targets and surrogates. `certify` says whether a surrogate is consistent for a target,
with the theorem that says so or a distribution that shows it is not. `surrogate_gap` and
`target_gap` are the minimizability gaps of linear scores. `independent`, `chain`, `exclusive`,
`hierarchy` and `rare_but_joint` make data whose p(y | x) is known, for the
`excess_risk` of any model. `THEOREMS` are the statements that `certify` goes by.

>>> print(THEOREMS[0].statement[:60])
Where scores reach every distribution over the label sets, e
"""

from setwise.consistency.certify import certify, examine
from setwise.consistency.known_truth import (
    ExcessRisk,
    Problem,
    chain,
    excess_risk,
    exclusive,
    hierarchy,
    independent,
    rare_but_joint,
    surrogate_excess,
)
from setwise.consistency.optimum import Optimum
from setwise.consistency.regret import (
    FiniteInputs,
    Gap,
    bayes,
    best_in_class,
    regret,
    risks,
    surrogate_gap,
    surrogate_regret,
    surrogate_risk,
    target_gap,
)
from setwise.consistency.setting import Effort
from setwise.consistency.theorems import THEOREMS, Theorem, bound
from setwise.consistency.verdicts import (
    Certificate,
    Counterexample,
    Distribution,
    Gamma,
    Undecided,
    from_dict,
    to_json,
)

__all__ = [
    "THEOREMS", "Certificate", "Counterexample", "Distribution", "Effort", "ExcessRisk",
    "FiniteInputs", "Gamma", "Gap", "Optimum", "Problem", "Theorem", "Undecided", "bayes",
    "best_in_class", "bound", "certify", "chain", "examine", "excess_risk", "exclusive",
    "from_dict", "hierarchy", "independent", "rare_but_joint", "regret", "risks",
    "surrogate_excess", "surrogate_gap", "surrogate_regret", "surrogate_risk", "target_gap",
    "to_json",
]  # fmt: skip
