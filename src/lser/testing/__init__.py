"""The contract of memories, to hold your own to: ``python -m lser.testing my_package:MyReplay``.

`subject` says what is tested and `traffic` what it is fed; `contract`, `refusals` and `uses` are
the checks: plain functions that raise `Broken`, without pytest. In a test of your own:

    def test_contract():
        found = lser.testing.verdicts(lser.testing.subject("my_package:MyReplay"))
        assert not [verdict for verdict in found if verdict.outcome == "broken"]
"""

from lser.testing.subject import Broken, NotForThis, Subject, subject
from lser.testing.verdicts import CHECKS, Verdict, verdicts

__all__ = ["CHECKS", "Broken", "NotForThis", "Subject", "Verdict", "subject", "verdicts"]
