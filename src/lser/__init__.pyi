from .agents import DDPG as DDPG
from .agents import SAC as SAC
from .agents import TD3 as TD3
from .agents import load_agent as load_agent
from .experiments.experiment import Experiment as Experiment
from .online import Recommender as Recommender
from .replay import E2LSH as E2LSH
from .replay import AttentiveReplay as AttentiveReplay
from .replay import ConstantCode as ConstantCode
from .replay import DynamicReplay as DynamicReplay
from .replay import HindsightReplay as HindsightReplay
from .replay import LocalityReplay as LocalityReplay
from .replay import Memory as Memory
from .replay import PrioritizedReplay as PrioritizedReplay
from .replay import RandomCode as RandomCode
from .replay import Replay as Replay
from .replay import SelectiveReplay as SelectiveReplay
from .replay import SimHash as SimHash
from .replay import UniformReplay as UniformReplay
from .replay import load_replay as load_replay
from .training import evaluate as evaluate
from .training import train as train
from .types import Batch as Batch
from .types import Transitions as Transitions

__version__: str
