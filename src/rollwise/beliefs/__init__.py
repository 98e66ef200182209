"""Beta beliefs over a prompt's success probability: priors, learning them, carrying them between visits."""

from __future__ import annotations

from rollwise.beliefs.fit import fit_discount, fit_prior, predictive_score
from rollwise.beliefs.prior import FLAT, check_priors, mean, parse_prior, update
from rollwise.beliefs.quadrature import beta_nodes, log_rising
from rollwise.beliefs.source import CarriedPrior, EmpiricalPrior, FixedPrior, PriorSource, prior_source
from rollwise.beliefs.store import BeliefStore

__all__ = [
    "FLAT",
    "BeliefStore",
    "CarriedPrior",
    "EmpiricalPrior",
    "FixedPrior",
    "PriorSource",
    "beta_nodes",
    "check_priors",
    "fit_discount",
    "fit_prior",
    "log_rising",
    "mean",
    "parse_prior",
    "predictive_score",
    "prior_source",
    "update",
]
