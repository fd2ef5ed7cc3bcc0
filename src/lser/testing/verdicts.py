"""All checks of the contract, one after the other, as verdicts."""

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from lser.testing import contract, refusals, uses
from lser.testing.subject import Broken, NotForThis, Subject

CHECKS = (*contract.CHECKS, *uses.CHECKS, *refusals.CHECKS)
"""Every check: functions of a `Subject` that raise `Broken`, or `NotForThis`."""


class Verdict(NamedTuple):
    """What one check found."""

    check: str
    outcome: Literal["ok", "skipped", "broken"]
    words: str  # what holds, why it was skipped, or what is broken


def verdicts(subject: Subject, skip: Collection[str] = ()) -> Iterator[Verdict]:
    """Hold a memory to the contract, check by check."""
    for check in CHECKS:
        name = check.__name__
        reason = "asked for" if name in skip else subject.exceptions.get(name, "")
        if reason:
            yield Verdict(name, "skipped", reason)
            continue
        try:
            check(subject)
        except NotForThis as why:
            yield Verdict(name, "skipped", str(why))
        except Broken as error:
            yield Verdict(name, "broken", str(error))
        except Exception as error:
            yield Verdict(name, "broken", f"it raised {error!r}")
        else:
            yield Verdict(name, "ok", (check.__doc__ or "").strip())
