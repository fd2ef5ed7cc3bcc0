"""Between the event loop and the log: who asks in one turn shares a commit and its fate."""

import asyncio

import pytest

from lser.online.log import Entry, Event, LogRefusedError, Receipt
from lser.online.service.committer import Committer


class Recorder:
    """A log that answers when told to."""

    def __init__(self):
        self.submissions, self.refuse = [], None

    def submit(self, tasks):
        if self.refuse is not None:
            raise self.refuse
        self.submissions += tasks

    def answer(self):
        for entries, done in self.submissions:
            done([Receipt(Event(0, 0.0, *entry), True) for entry in entries], None)
        self.submissions.clear()


def entry(id):
    return Entry("decision", id, b"{}")


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


def together(story, timeout=1_000.0):
    async def run():
        log = Recorder()
        return await story(log, Committer(log, timeout))

    return asyncio.run(run())


def test_requests_of_near_turns_are_one_submission_and_each_gets_its_own():
    async def story(log, committer):
        async def later():
            await asyncio.sleep(0)
            return await committer.append([entry("c")])

        first = asyncio.gather(
            committer.append([entry("a"), entry("b")]), committer.append([]), later()
        )
        await turns()
        assert [len(entries) for entries, _ in log.submissions] == [3]
        second = asyncio.gather(committer.append([entry("d")]))
        await turns()
        assert len(log.submissions) == 2
        log.answer()
        return await first, await second

    first, second = together(story)
    ids = [[receipt.event.id for receipt in receipts] for receipts in (*first, *second)]
    assert ids == [["a", "b"], [], ["c"], ["d"]]


def test_requests_that_keep_coming_do_not_hold_the_first_one_back():
    async def story(log, committer):
        waiting = []
        for number in range(100):
            waiting.append(asyncio.ensure_future(committer.append([entry(str(number))])))
            await asyncio.sleep(0)
        assert len(log.submissions) > 5
        await turns()
        log.answer()
        return [(await one)[0].event.id for one in waiting]

    assert together(story) == [str(number) for number in range(100)]


def test_a_log_that_refuses_or_is_late_is_told_to_all_who_wait():
    async def refused(log, committer):
        log.refuse = LogRefusedError("closed")
        return await asyncio.gather(
            committer.append([entry("a")]), committer.append([]), return_exceptions=True
        )

    async def late(log, committer):
        found = await asyncio.gather(
            committer.append([entry("a")]), committer.append([entry("b")]), return_exceptions=True
        )
        log.answer()  # nobody waits any more
        await turns()
        return found

    assert [str(error) for error in together(refused)] == ["closed"] * 2
    found = together(late, timeout=0.01)
    assert [str(error) for error in found] == ["the log did not answer within 0.01 s"] * 2


def test_a_client_who_left_does_not_keep_others_from_their_answers():
    async def story(log, committer):
        leaving = asyncio.ensure_future(committer.append([entry("a")]))
        staying = asyncio.ensure_future(committer.append([entry("b")]))
        await turns()
        leaving.cancel()
        await turns()
        log.answer()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        return (await staying)[0].event.id

    assert together(story) == "b"
