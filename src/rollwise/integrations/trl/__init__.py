"""rollwise in TRL: change the import and the config class, and a step's rollouts go where they teach most."""

from rollwise.integrations.trl.config import RollwiseGRPOConfig
from rollwise.integrations.trl.trainer import RollwiseGRPOTrainer

__all__ = ["RollwiseGRPOConfig", "RollwiseGRPOTrainer"]
