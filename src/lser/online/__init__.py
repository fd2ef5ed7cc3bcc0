"""An online recommender: it recommends, takes clicks, learns while it serves, and logs it all."""

from lser.online.desk import ConflictError, Page
from lser.online.log import LogRefusedError
from lser.online.recommender import Recommender
from lser.online.settings import Settings

__all__ = ["ConflictError", "LogRefusedError", "Page", "Recommender", "Settings"]
