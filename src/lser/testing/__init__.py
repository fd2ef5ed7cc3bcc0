"""The contract of memories, to hold your own to: ``python -m lser.testing my_package:MyReplay``.

`subject` says what is tested and `traffic` what it is fed; `contract`, `refusals` and `uses` are
the checks: plain functions that raise `Broken`, without pytest. In a test of your own:

    @pytest.mark.parametrize("check", lser.testing.CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check(lser.testing.subject("my_package:MyReplay"))
"""

from lser.testing.contract import CHECKS as _LIFE
from lser.testing.refusals import CHECKS as _REFUSALS
from lser.testing.subject import Broken, NotForThis, Subject, subject
from lser.testing.uses import CHECKS as _USES

CHECKS = (*_LIFE, *_USES, *_REFUSALS)
"""Every check of the contract: functions of a `Subject` that raise `Broken`, or `NotForThis`."""

__all__ = ["CHECKS", "Broken", "NotForThis", "Subject", "subject"]
