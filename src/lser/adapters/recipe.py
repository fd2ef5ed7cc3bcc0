"""Which memory an adapter was asked for: by the catalogue's names, with the memory's own knobs."""

import dataclasses
import inspect
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lser.catalogue import MEMORIES
from lser.replay import Memory, Replay, State
from lser.types import Float32, Int64

_ROWLESS = "storage='none': "  # how a memory begins its refusal to be a rule without rows


class Recipe:
    """How to make the memory that was asked for, as often as a buffer is emptied.

    `memory` is a name of the catalogue, ``module:Class``, or a class; `knobs` are the fields of
    its `Params` and what its constructor takes besides. A name that stands for a variant, as
    "reward-top", sets the knobs that make the variant; `knobs` have the last word.
    """

    def __init__(
        self, memory: str | type[Replay], seed: int, params: Any, knobs: dict[str, Any]
    ) -> None:
        variant: dict[str, Any] = {}
        if isinstance(memory, str):
            entry = MEMORIES[memory]
            self.kind: Any = entry.load()
            variant = dict(entry.knobs)
        elif isinstance(memory, type):
            self.kind = memory
        else:
            raise ValueError(
                f"memory must be a name, as 'lser' or 'module:Class', or a class, got {memory!r}"
            )
        self.name = memory if isinstance(memory, str) else self.kind.__name__
        self.options: dict[str, Any] = {**knobs, "seed": seed}
        self.needs: frozenset[str] = frozenset()
        kind = getattr(self.kind, "Params", None)
        if kind is None:
            if params is not None:
                raise ValueError(f"params={params!r}: {self.name} has no Params")
            if "seed" not in inspect.signature(self.kind).parameters:
                del self.options["seed"]
            return
        if params is not None and not isinstance(params, kind):
            raise ValueError(f"params must be a {kind.__qualname__}, got {params!r}")
        known = {field.name for field in dataclasses.fields(kind)}
        changes = variant | {name: value for name, value in knobs.items() if name in known}
        made = kind(**changes) if params is None else dataclasses.replace(params, **changes)
        self.options = {name: o for name, o in self.options.items() if name not in known}
        self.options["params"] = made
        self.needs = _needs(made)

    @property
    def hears(self) -> bool:
        """Whether TD errors mean anything to the memory."""
        return getattr(self.kind, "feedback", None) is not Memory.feedback

    def make(self, capacity: int, observation_dim: int, action_dim: int) -> Replay:
        """A new memory with rows of its own."""
        memory: Replay = self.kind(capacity, observation_dim, action_dim, **deepcopy(self.options))
        return memory

    def make_rule(self, capacity: int, observation_dim: int, library: str) -> Memory:
        """A new memory without rows, or a ValueError that says why there can be none."""
        for name in ("storage", "path"):
            if name in self.options:
                raise ValueError(f"{name}: the transitions lie in {library}'s storage, not here")
        if not issubclass(self.kind, Memory):
            self._refuse(library, "it keeps rows itself (it is no lser.replay.Memory)")
        try:
            rule: Memory = self.kind(
                capacity, observation_dim, 1, storage="none", **deepcopy(self.options)
            )
        except ValueError as error:
            if not str(error).startswith(_ROWLESS):
                raise
            self._refuse(library, str(error).removeprefix(_ROWLESS))
        return rule

    def _refuse(self, library: str, why: str) -> NoReturn:
        raise ValueError(
            f"memory={self.name!r} cannot be used with {library}, which keeps the transitions in "
            f"its own storage: {why}. It works with lser.train and with Stable-Baselines3"
        ) from None


class Rule:
    """A memory without rows that can be emptied and exchanged, for whoever holds the rows."""

    def __init__(self, recipe: Recipe, capacity: int, observation_dim: int, library: str) -> None:
        self.recipe, self.library = recipe, library
        self.observation_dim = observation_dim
        self.memory = recipe.make_rule(capacity, observation_dim, library)

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        return self.memory.capacity

    def __len__(self) -> int:
        return len(self.memory)

    def clear(self) -> None:
        """Forget everything, as if newly made."""
        self.memory = self.recipe.make_rule(self.capacity, self.observation_dim, self.library)

    def place(
        self, observation: NDArray[Any], reward: ArrayLike, ended: ArrayLike, streams: ArrayLike
    ) -> Int64:
        """The slots newcomers take, -1 where one is refused."""
        self._check(observation)
        return self.memory.place(observation, reward, ended, streams)

    def pick(self, batch_size: int, query: Float32 | None) -> tuple[Int64, Float32]:
        """The slots to replay and their weights; a query only where the memory asks for one."""
        if query is None and "query" not in self.recipe.needs:
            query = np.zeros(self.observation_dim, np.float32)
        return self.memory.pick(batch_size, query)

    def replace(self, memory: Memory) -> None:
        """Continue with a memory that was saved."""
        if memory.capacity != self.capacity or memory.KIND != self.memory.KIND:
            raise ValueError(
                f"what was saved is a {memory.KIND!r} memory of {memory.capacity} transitions, "
                f"this is a {self.memory.KIND!r} memory of {self.capacity}"
            )
        self.memory = memory

    def load(self, state: State) -> None:
        """Continue from the state of a memory like this one."""
        self.replace(type(self.memory).from_state(state))

    def _check(self, observation: NDArray[Any]) -> None:
        """Refuse what is almost always a mistake, with what to do about it."""
        width = observation.shape[1]
        if width != self.observation_dim:
            raise ValueError(
                f"observations have {width} numbers, the memory was made for "
                f"observation_dim={self.observation_dim}"
            )
        whole = np.issubdtype(observation.dtype, np.integer)
        if whole and width == 1 and "query" in self.recipe.needs:
            raise ValueError(
                f"observations are single integers of a Discrete space: {self.recipe.name!r} "
                "compares observations, and the number of a category says nothing about its "
                "likeness to others; make them one-hot, e.g. by gymnasium's FlattenObservation"
            )


def _needs(params: Any) -> frozenset[str]:
    """What the catalogue says a memory with these settings needs; others' need nothing."""
    try:
        return MEMORIES[MEMORIES.name_of(params)].needs
    except ValueError:
        return frozenset()
