"""``python -m lser.testing my_package:MyReplay``: hold a memory to the contract, check by check."""

import argparse
import ast
import sys
from typing import Any

from lser.testing import CHECKS, subject, verdicts


def main(argv: list[str] | None = None) -> int:
    """Run every check; returns 1 if any is broken."""
    parser = argparse.ArgumentParser(prog="python -m lser.testing", description=__doc__)
    parser.add_argument("memory", help="module:Class, or a name of `lser memories`")
    known = [check.__name__ for check in CHECKS]
    knob_help = "a setting of the memory (repeat for more)"
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help=knob_help)
    parser.add_argument("--skip", action="append", default=[], choices=known, metavar="CHECK",
                        help="a check that is not for it (repeat for more)")  # fmt: skip
    parser.add_argument("--needs", nargs="*", choices=("query", "td_errors", "sessions", "goals"),
                        help="what it makes use of, to check that too")  # fmt: skip
    options = parser.parse_args(argv)
    needs = None if options.needs is None else frozenset(options.needs)
    try:
        tested = subject(options.memory, needs=needs, **dict(map(_knob, options.set)))
    except ValueError as error:
        parser.error(str(error))
    broken = 0
    for name, outcome, words in verdicts(tested, skip=options.skip):
        broken += outcome == "broken"
        print(f"{outcome:8}{name:32}{words}")
    print(f"{tested.name}: {broken} of {len(CHECKS)} checks are broken")
    return 1 if broken else 0


def _knob(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set takes KNOB=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value  # a word


if __name__ == "__main__":
    sys.exit(main())
