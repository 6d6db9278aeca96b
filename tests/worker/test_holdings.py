"""What a child has of the queue's."""

import threading

from rqlite_jobs.operations import Settlement
from rqlite_jobs.worker import outcome
from rqlite_jobs.worker.holdings import HAND_MAX, HAND_S, STALE_S, TURN_BYTES, Holdings
from tests.worker.parts import Clock, claim, done

A, B, C, D = (claim(name) for name in "abcd")


def test_the_first_start_and_the_rest_lies_in_hand_in_order() -> None:
    holdings = Holdings()
    assert holdings.receive([A, B, C], to_start=1) == [A]
    assert holdings.in_hand
    assert holdings.ids() == ["a", "b", "c"]
    assert [holdings.next_in_hand() for _ in range(3)] == [B, C, None]
    assert holdings.receive([D], to_start=2) == [D]


def test_a_job_is_held_until_its_outcome_is_recorded() -> None:
    holdings = Holdings()
    holdings.receive([A])
    assert not holdings.idle
    assert holdings.end(A, done(A), 0.1)
    assert holdings.waiting
    number, taken = holdings.begin_turn()
    assert taken == [done(A)]
    assert not holdings.waiting
    assert holdings.ids() == ["a"], "the heartbeat must still name it"
    holdings.settled(taken)
    assert holdings.ids() == []
    assert not holdings.idle, "the turn is not over yet"
    holdings.end_turn(number, found_nothing=True)
    assert holdings.idle


def test_it_is_idle_once_all_turns_are_over_that_began_before_one_found_nothing() -> None:
    holdings = Holdings()
    (first, _), (second, _), (third, _) = (holdings.begin_turn() for _ in range(3))
    holdings.end_turn(second)
    assert not holdings.idle, "nobody has found that there is nothing"
    holdings.end_turn(third, found_nothing=True)
    fourth, _ = holdings.begin_turn()
    assert not holdings.idle, "the first may have a job"
    holdings.end_turn(first, found_nothing=True)
    assert holdings.idle, (
        "the fourth asked when there was nothing: where slots ask all the time it is always so"
    )
    holdings.receive([A])
    fifth, _ = holdings.begin_turn()
    holdings.end_turn(fourth, found_nothing=True)
    holdings.end(A, done(A))
    holdings.settled([done(A)])
    assert not holdings.idle, "a job came: whether there are more must be found anew"
    holdings.end_turn(fifth, found_nothing=True)
    assert holdings.idle


def test_nothing_is_kept_of_jobs_that_were_dropped() -> None:
    holdings = Holdings()
    holdings.receive([A, B, C])
    holdings.end(A, done(A))
    assert holdings.drop() == [A, B, C]
    assert not holdings.waiting
    assert not holdings.in_hand
    assert not holdings.end(A, done(A))
    assert holdings.ids() == []


def test_a_job_that_came_back_under_another_token_is_another_claim() -> None:
    holdings = Holdings()
    holdings.receive([A])
    holdings.drop()
    again = claim("a", 2)
    holdings.receive([again])
    assert not holdings.end(A, done(A)), "the run of the first claim says nothing of the second"
    holdings.settled([done(A)])
    assert holdings.ids() == ["a"]
    assert holdings.end(again, done(again))


def test_a_stale_hand_goes_back_last_first_and_a_fresh_one_stays() -> None:
    clock = Clock()
    holdings = Holdings(clock)
    holdings.receive([A, B, C, D])
    clock.now_s += STALE_S * 0.9
    assert holdings.hand_back_stale() == 0
    assert holdings.next_in_hand() == B
    clock.now_s += STALE_S * 0.9
    assert holdings.hand_back_stale() == 0, "it was touched meanwhile"
    clock.now_s += STALE_S
    assert holdings.hand_back_stale() == 2
    assert holdings.begin_turn()[1] == [outcome.handed_back(D), outcome.handed_back(C)]
    assert holdings.ids() == list("abcd"), "held until that is recorded"
    assert holdings.hand_back_stale() == 0


def test_handing_back_all_waits_for_nothing() -> None:
    holdings = Holdings()
    holdings.receive([A, B, C])
    assert holdings.hand_back_all() == 2
    assert holdings.next_in_hand() is None


def test_a_hand_is_sized_by_how_long_jobs_take() -> None:
    holdings = Holdings()

    def run(took_s: float, times: int) -> int:
        for _ in range(times):
            holdings.receive([A])
            holdings.end(A, done(A), took_s)
            holdings.drop()
        return holdings.hand_room()

    assert holdings.hand_room() == 0, "nothing is known yet"
    assert run(0.000_01, 30) == 0, "slow to believe that jobs are short"
    assert run(0.000_01, 200) == HAND_MAX
    assert run(0.001, 50) in (4, 5), "never more than a few milliseconds' worth"
    assert run(0.000_01, 200) == HAND_MAX
    assert run(0.1, 1) == 0, "quick to believe that they are long"
    assert run(HAND_S, 100) == 0


def test_a_hand_is_not_filled_up_while_something_lies_in_it() -> None:
    holdings = Holdings()
    for _ in range(300):
        holdings.receive([A])
        holdings.end(A, done(A), 0.000_01)
        holdings.drop()
    holdings.receive([A, B])
    assert holdings.hand_room() == 0


def test_many_threads_give_out_each_job_of_a_hand_once() -> None:
    holdings = Holdings()
    claims = [claim(str(n)) for n in range(5000)]
    holdings.receive(claims, to_start=0)
    got: list[list[str]] = [[] for _ in range(4)]

    def take(mine: list[str]) -> None:
        while (one := holdings.next_in_hand()) is not None:
            mine.append(one.id)
            holdings.end(one, Settlement("done", one.id, one.token))

    threads = [threading.Thread(target=take, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(id for mine in got for id in mine) == sorted(one.id for one in claims)
    assert len(holdings.begin_turn()[1]) == 5000


def test_a_turn_takes_results_up_to_a_bound_in_bytes() -> None:
    holdings, part = Holdings(), b"x" * (TURN_BYTES // 4)
    sizes = [part, part, part, part, b"y", b"", part * 8, b"", b"z"]
    claims = [claim(str(number), number) for number in range(len(sizes))]
    holdings.receive(claims, len(claims))
    for one, result in zip(claims, sizes, strict=True):
        assert holdings.end(one, Settlement("returned", one.id, one.token, result=result))
    taken = []
    while holdings.waiting:
        number, settlements = holdings.begin_turn()
        taken.append([one.id for one in settlements])
        holdings.settled(settlements)
        holdings.end_turn(number)
    assert taken == [["0", "1", "2", "3"], ["4", "5"], ["6"], ["7", "8"]]
    assert holdings.ids() == []
