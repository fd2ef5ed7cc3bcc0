"""The platforms of the comparison as Gymnasium environments, native in batches of users."""

import gymnasium as gym

# id -> module and class prefix; `Prefix + "Env"` and `Prefix + "VectorEnv"` are the entry points
SIMULATORS: dict[str, tuple[str, str]] = {
    "lser/VirtualTaobao-v0": ("virtual_taobao", "VirtualTaobao"),
    "lser/InterestEvolution-v0": ("interest_evolution", "InterestEvolution"),
    "lser/LongTermSatisfaction-v0": ("long_term_satisfaction", "LongTermSatisfaction"),
    "lser/RecoGym-v0": ("recogym", "RecoGym"),
    "lser/Bazaar-v0": ("bazaar", "Bazaar"),
}


def register() -> None:
    """Make the simulators known to `gym.make` and `gym.make_vec`; done by ``import lser``."""
    for name, (module, prefix) in SIMULATORS.items():
        if name not in gym.registry:
            gym.register(
                name,
                entry_point=f"lser.simulators.{module}:{prefix}Env",
                vector_entry_point=f"lser.simulators.{module}:{prefix}VectorEnv",
            )
