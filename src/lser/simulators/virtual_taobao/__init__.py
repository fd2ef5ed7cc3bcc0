"""VirtualTaobao: its parameters; `simulator` has the dynamics, `weights` the released networks."""

from lser.simulators.virtual_taobao.params import Params

__all__ = ["Params"]
