"""One loss for each row, by compiled kernels on the CPU and by torch operations everywhere else."""

from __future__ import annotations

import torch
from torch import Tensor

from setwise.nn.binary_relevance import relevance_rows
from setwise.nn.border import is_plain, refuse_bad_logits, refuse_open, untraced
from setwise.nn.compiled import Compiled, Cores
from setwise.nn.recipe import Recipe
from setwise.nn.tensors import Batch, Law, law_of
from setwise.nn.tensors.batch import lasting
from setwise.nn.tensors.constant import Constant
from setwise.nn.tensors.elementary import in_range, within_unit
from setwise.nn.tensors.law import listed_law_of
from setwise.nn.tensors.listed import Listed
from setwise.spaces import Cube, Space
from setwise.targets import Hamming, ZeroOne
from setwise.targets.measure import Table


class RowLoss:
    """A recipe on a space. What cannot be exact is refused when it is made."""

    def __init__(self, recipe: Recipe, space: Space):
        self.recipe, self.space = recipe, space
        self._laws: dict[bool, Law] = {}
        self._sizes_seen: set[int] = set()
        self._own = Constant(space.parameters)
        # (On the cube the likelihood is that of its labels, one by one.)
        is_cube_likelihood = recipe.surrogate == "likelihood" and isinstance(space, Cube)
        self._is_by_label = recipe.surrogate == "binary_relevance" or is_cube_likelihood
        if self._is_by_label:
            if not isinstance(space, Cube):
                raise ValueError(
                    f"binary relevance decides label by label, but {space} does not have every "
                    f"label set; use Cube({space.n_labels}), or no space"
                )
            return
        self.cores = Cores(recipe, space)
        if recipe.backend == "torch":
            self._build_law(False)

    def __reduce__(self):
        # What was made from the two is made again elsewhere.
        return RowLoss, (self.recipe, self.space)

    def __call__(
        self,
        logits: Tensor,
        parameters: Tensor | None,
        y_true: Tensor,
        known: Tensor | None,
        q: float | None,
    ) -> Tensor:
        """The loss of each row, (n,); 0 where no label is known."""
        y_true = lasting(y_true)
        known = None if known is None else lasting(known)
        within = self.recipe.surrogate == "likelihood"
        refuse_open(y_true, self.recipe.target, self.space, within)
        if not self._is_by_label and self._wants_kernels(logits, known):
            return Compiled.apply(logits, parameters, self, y_true, known, q)  # type: ignore
        refuse_bad_logits(logits)
        if self._is_by_label:
            return relevance_rows(self.recipe, logits, y_true, known)
        if self.recipe.target.form == "table" and is_plain(logits):
            measure = self.recipe.target.measure(self.space.n_labels, "loss")
            assert isinstance(measure, Table)
            measure.index(y_true.numpy(), "target")
        return self.by_tensors(logits, parameters, y_true, known, q)

    def by_tensors(
        self,
        logits: Tensor,
        parameters: Tensor | None,
        y_true: Tensor,
        known: Tensor | None,
        q: float | None,
    ) -> Tensor:
        """The loss of each row in torch operations."""
        masked = known is not None
        if masked not in self._laws:
            untraced(self._build_law)(masked)
        law, dtype = self._laws[masked], logits.dtype
        logits = logits if q is None else in_range(logits, q)
        batch = Batch.of(y_true, known, logits)
        own = self._own.beside(logits) if parameters is None else parameters.to(logits.dtype)
        if q is not None:
            rows = law.comp_sum(batch, logits, own, q)
        elif self.recipe.surrogate == "likelihood":
            rows = law.likelihood(batch, logits, own)
        elif self.recipe.surrogate == "expected_loss":
            rows = within_unit(law.expected(batch, logits, own))
        elif isinstance(law, Listed) and self.recipe.margin not in (None, "exponential"):
            rows = law.constrained(batch, logits, own, self.recipe.margin, self.recipe.rho)
        else:
            rows = law.exponential(batch, logits, own)
        rows = rows.to(dtype)
        return rows if known is None else torch.where(batch.n_known > 0, rows, 0.0)

    def _build_law(self, masked: bool) -> None:
        recipe, space = self.recipe, self.space
        target = ZeroOne() if recipe.surrogate == "likelihood" else recipe.target.on(space)
        if recipe.surrogate == "constrained" and recipe.margin != "exponential":
            self._laws[masked] = listed_law_of(target, space, masked)
        else:
            is_utility = recipe.has_power or recipe.surrogate == "likelihood"
            of = "utility" if is_utility else "loss"
            self._laws[masked] = law_of(target, space, of, masked)

    def _wants_kernels(self, logits: Tensor, known: Tensor | None) -> bool:
        """Whether the compiled kernels serve this call."""
        backend, able = self.recipe.backend, is_plain(logits)
        # Weights that differ belong to certain labels: no smaller cube stands for known ones.
        able = able and not (known is not None and self._has_weights)
        if backend == "compiled" and not able:
            raise ValueError(
                "backend='compiled' runs on the CPU, outside torch.compile and torch.func, and "
                "without a mask for weighted labels; use backend='auto'"
            )
        return able and backend != "torch"

    @property
    def _has_weights(self) -> bool:
        target = self.recipe.target
        return isinstance(target, Hamming) and target.weights is not None

    def refuse_known(self, known: Tensor) -> None:
        """Raise unless the loss has a meaning over some of the labels."""
        if not isinstance(self.space, Cube):
            raise ValueError(
                f"a mask needs all label sets: on {self.space} the known labels alone do not "
                f"decide which sets are possible; use Cube({self.space.n_labels})"
            )
        target = self.recipe.target
        if self.recipe.surrogate in ("binary_relevance", "likelihood"):
            return
        is_sum = target.form == "additive" and not isinstance(target, Hamming)
        if target.form == "table" or is_sum:
            raise ValueError(
                f"{target} is not defined over some of its labels; with a mask use a function of "
                f"the counts, subset 0/1 or Hamming loss (weighted by length it is tree distance)"
            )
        if is_plain(known):
            # A quotient may leave [0, 1] for fewer labels.
            for size in set(known.sum(1).unique().tolist()) - self._sizes_seen - {0}:
                if not self._has_weights:
                    target.on(Cube(size))
                self._sizes_seen.add(size)
