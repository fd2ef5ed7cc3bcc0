"""The original simulators, imported with shims for what they do not need here.

Nothing of their dynamics is touched: only missing imports (gym, TensorFlow, dopamine) are stood in.
"""

import importlib
import sys
import types
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from lser.simulators.recsim.interest_evolution import Params as InterestEvolution
from lser.simulators.recsim.long_term_satisfaction import Params as LongTermSatisfaction
from lser.simulators.recsim.long_term_satisfaction.dynamics import Constants

_USER_MODEL = ("no_click_mass", "alpha_x_intercept", "alpha_y_intercept")
_VIDEOS = ("min_utility", "max_utility", "video_length")
_USER_SAMPLER = ("document_quality_factor", "min_normalizer")


def _stand_in(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules.setdefault(name, module)


def recsim(environment: str) -> Any:
    """RecSim's module `environment` ("interest_evolution" or "long_term_satisfaction")."""
    sys.modules.setdefault("gym", gymnasium)
    sys.modules.setdefault("gym.spaces", gymnasium.spaces)
    gin: Any = importlib.import_module("gin")
    _stand_in("gin.tf")
    gin.tf = sys.modules["gin.tf"]
    gin.tf.configurable = gin.configurable
    _stand_in("recsim.simulator.runner_lib")
    return importlib.import_module(f"recsim.environments.{environment}")


def interest_evolution(params: InterestEvolution, seed: int) -> Any:
    """RecSim's interest evolution with our parameters."""
    module = recsim("interest_evolution")
    choice = importlib.import_module("recsim.choice_model")
    gin: Any = importlib.import_module("gin")

    for name in _USER_SAMPLER:
        gin.bind_parameter(f"UtilityModelUserSampler.{name}", getattr(params, name))
    users = module.IEvUserModel(
        params.slate_size,
        choice_model_ctor=choice.MultinomialProportionalChoiceModel,
        seed=seed,
        **{name: getattr(params, name) for name in _USER_MODEL},
    )
    videos = module.UtilityModelVideoSampler(
        seed=seed, **{name: getattr(params, name) for name in _VIDEOS}
    )
    return module.environment.Environment(
        users, videos, params.num_candidates, params.slate_size, params.resample_documents
    )


def long_term_satisfaction(params: LongTermSatisfaction, seed: int) -> Any:
    """RecSim's long-term satisfaction with our parameters (its own factory ignores the seed)."""
    module = recsim("long_term_satisfaction")
    gin: Any = importlib.import_module("gin")

    for name in Constants._fields:
        if name not in ("max_engagement", "exposure_memory"):
            gin.bind_parameter(f"LTSStaticUserSampler.{name}", getattr(params, name))
    users = module.LTSUserModel(
        params.slate_size, module.LTSUserState, module.LTSResponse, seed=seed
    )
    return module.environment.Environment(
        users,
        module.LTSDocumentSampler(seed=seed),
        params.num_candidates,
        params.slate_size,
        params.resample_documents,
    )


def documents(env: Any, attribute: str) -> NDArray[Any]:
    """An attribute of the original's candidates, (1, candidates)."""
    found = env.candidate_set.get_all_documents()
    return np.array([[getattr(document, attribute) for document in found]])
