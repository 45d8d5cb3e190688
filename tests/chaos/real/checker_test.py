#!/usr/bin/python3 -B
"""Hand-made histories for checker.py: each kind of violation, planted, and the nearest history that is right.

In these texts all times are seconds; a line of a worker begins with time and thread, a line of the run with the time.
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import checker  # noqa: E402

TIMES = {"got": [7], "until": [4], "stalled": [3]}  # which words of a worker's line are times, too
RUN = """0 setting max_lease_ms 1000
         0 setting fence_retention_ms 60000
         0 start a
         0 start b
         100 calm
         200 closing
         201 closed a 0
         201 closed b 0
         202 over"""


def ns(seconds):
    return str(round(float(seconds) * 1e9))


def worker_line(words):
    times = [0] + [at for at in TIMES.get(words[2], []) if at < len(words)]
    return [ns(word) if at in times else word for at, word in enumerate(words)]


def run_line(words):
    times = (0, 2, 3) if words[1] == "outside" else (0,)
    return [ns(word) if at in times else word for at, word in enumerate(words)]


def judge(a, b="", run=RUN, **stores):
    with tempfile.TemporaryDirectory() as directory:
        texts = {"a.history": (a, worker_line), "b.history": (b, worker_line), "run.history": (run, run_line)}
        for name, (text, convert) in texts.items():
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.writelines(" ".join(convert(line.split())) + "\n" for line in text.splitlines() if line.strip())
        for name, text in stores.items():
            with open(os.path.join(directory, name.replace("_", ".") + ".log"), "w", encoding="utf-8") as file:
                file.write(text)
        return checker.judge(checker.History(directory))


def grant(begin, end, token, lock="stock", mode="x", thread=1, number=None, until=None):
    """Asked, acquired and released."""
    number, until = number or token, until or end + 5
    return f"""{begin - 0.1:.3f} {thread} ask {lock} {mode}
               {begin} {thread} got {lock} {mode} {number} {token} {until}
               {end} {thread} free {number}
               {end + 0.01:.3f} {thread} freed {number} 0
               """


# Somebody acquires the lock when the faults are over.
LATER = grant(150, 151, 999)
LATER_SLOW, LATER_TABLE = grant(150, 151, 999, "slow"), grant(150, 151, 999, "table")
DELAY = RUN + "\n 0 setting delay_ms 500"


class Planted(unittest.TestCase):
    def assert_rules(self, verdict, *rules):
        self.assertEqual(sorted({text.split(":")[0] for text in verdict["failures"]}), sorted(rules), verdict["failures"])

    def assert_clean(self, verdict):
        self.assert_rules(verdict)

    # ---- exclusion

    def test_one_after_the_other_is_right(self):
        self.assert_clean(judge(grant(1, 2, 10) + LATER, grant(2.001, 3, 11)))

    def test_two_beliefs_at_once(self):
        verdict = judge(grant(1, 2, 10) + LATER, grant(1.999, 3, 11))
        self.assert_rules(verdict, "exclusion")
        self.assertEqual(verdict["overlaps"], 1)

    def test_one_belief_inside_another(self):
        self.assert_rules(judge(grant(1, 9, 10, until=20) + LATER, grant(4, 5, 11)), "exclusion")

    def test_the_third_belief_overlaps_the_first(self):
        between = grant(1, 2, 11, until=1.5)
        self.assert_rules(judge(grant(1.6, 9, 12, until=20) + LATER, between + grant(8, 8.5, 13)), "exclusion")

    def test_a_belief_ends_with_its_validity(self):
        self.assert_clean(judge("1 1 got stock x 1 10 4" + "\n" + LATER, grant(4.001, 5, 11)))
        self.assert_rules(judge("1 1 got stock x 1 10 4" + "\n" + LATER, grant(3.999, 5, 11)), "exclusion")

    def test_a_renewal_prolongs_it(self):
        renewed = "1 1 got stock x 1 10 4\n 3 1 until 1 8\n"
        self.assert_clean(judge(renewed + LATER, grant(8.001, 9, 11)))
        self.assert_rules(judge(renewed + LATER, grant(7.999, 9, 11)), "exclusion")

    def test_a_belief_ends_when_it_is_lost(self):
        lost = "1 1 got stock x 1 10 9\n 3 1 lost 1\n"
        self.assert_clean(judge(lost + LATER, grant(3.001, 4, 11)))
        self.assert_rules(judge(lost + LATER, grant(2.999, 4, 11)), "exclusion")

    def test_a_belief_ends_with_its_process(self):
        killed = RUN + "\n 3 dead b"
        self.assert_clean(judge(grant(3.001, 4, 11) + LATER, "1 1 got stock x 1 10 9", run=killed))
        self.assert_rules(judge(grant(2.999, 4, 11) + LATER, "1 1 got stock x 1 10 9", run=killed), "exclusion")

    def test_a_belief_ends_with_its_validity_also_if_it_is_released_later(self):
        self.assert_clean(judge("1 1 got stock x 1 10 4\n 6 1 free 1\n" + LATER, grant(4.5, 5, 11)))

    def test_a_belief_ends_with_its_release_also_if_its_process_is_killed_later(self):
        killed = RUN + "\n 8 dead b"
        self.assert_clean(judge(grant(3.001, 4, 11) + LATER, grant(1, 3, 10, until=20), run=killed))

    def test_readers_together_are_right(self):
        self.assert_clean(judge(grant(1, 3, 10, mode="r") + LATER, grant(2, 4, 11, mode="r")))

    def test_a_writer_beside_a_reader(self):
        self.assert_rules(judge(grant(1, 3, 10, mode="r") + LATER, grant(2, 4, 11)), "exclusion")
        self.assert_rules(judge(grant(1, 3, 10) + LATER, grant(2, 4, 11, mode="r")), "exclusion")

    def test_an_upgrade_beside_its_own_reading_is_right(self):
        self.assert_clean(judge(grant(1, 4, 10, mode="r") + grant(2, 3, 11) + LATER))

    def test_an_upgrade_beside_another_thread_that_reads(self):
        self.assert_rules(judge(grant(1, 4, 10, mode="r") + grant(2, 3, 11, thread=2) + LATER), "exclusion")

    def test_permits_up_to_the_limit_are_right(self):
        self.assert_clean(judge(grant(1, 3, 10, "pool", "p2") + grant(150, 151, 20, "pool", "p3"),
                                grant(2, 4, 11, "pool", "p1")))

    def test_too_many_permits(self):
        self.assert_rules(judge(grant(1, 3, 10, "pool", "p2") + grant(150, 151, 20, "pool", "p3"),
                                grant(2, 4, 11, "pool", "p2")), "exclusion")
        of_a = grant(1, 5, 10, "pool", "p1") + grant(3, 4, 12, "pool", "p2", thread=2)
        self.assert_rules(judge(of_a + grant(150, 151, 20, "pool", "p3"), grant(2, 5, 11, "pool", "p1")), "exclusion")

    def test_other_locks_are_other_locks(self):
        self.assert_clean(judge(grant(1, 3, 10, "left") + grant(150, 151, 20, "left"),
                                grant(2, 4, 9, "right") + grant(150, 151, 20, "right")))

    def test_an_overlap_outside_the_promise_is_told_and_no_failure(self):
        outside = RUN + "\n 1 begin 1 clock_forward s\n 1.5 end 1\n 5 outside 1 5 exclusion,tokens may overlap"
        verdict = judge(grant(1, 3, 10) + LATER, grant(2, 4, 11), run=outside)
        self.assert_clean(verdict)
        self.assertEqual((verdict["overlaps"], verdict["overlaps_outside"]), (0, 1))
        self.assertIn("may overlap", verdict["excused"][0])
        self.assert_rules(judge(grant(5.5, 7, 10) + LATER, grant(6, 8, 11), run=outside), "exclusion")
        self.assert_rules(judge(grant(1, 3, 10) + LATER, grant(2, 4, 11), run=outside.replace("exclusion,", "")), "exclusion")

    # ---- tokens

    def test_a_later_token_that_is_smaller(self):
        self.assert_rules(judge(grant(1, 2, 11) + LATER, grant(3, 4, 10)), "tokens")

    def test_a_token_given_twice(self):
        self.assert_rules(judge(grant(1, 2, 10) + LATER, grant(3, 4, 10)), "tokens")

    def test_a_token_smaller_than_that_of_the_last_but_one(self):
        self.assert_rules(judge(grant(1, 2, 20) + grant(5, 6, 19) + LATER, grant(3, 4, 21)), "tokens")

    def test_the_order_among_readers_means_nothing(self):
        self.assert_clean(judge(grant(1, 2, 11, mode="r") + LATER, grant(3, 4, 10, mode="r")))

    def test_a_reader_whose_token_is_behind_the_writers(self):
        self.assert_rules(judge(grant(1, 2, 11) + LATER, grant(3, 4, 10, mode="r")), "tokens")
        self.assert_rules(judge(grant(1, 2, 10) + grant(3, 4, 20) + LATER, grant(5, 6, 15, mode="r")), "tokens")

    def test_a_writer_whose_token_is_behind_a_readers(self):
        self.assert_rules(judge(grant(1, 2, 11, mode="r") + LATER, grant(3, 4, 10)), "tokens")

    def test_a_writer_whose_token_is_behind_that_of_the_last_reader_but_one(self):
        self.assert_rules(judge(grant(1, 2, 12, mode="r") + grant(4, 5, 11) + LATER, grant(3, 3.5, 10, mode="r")), "tokens")

    def test_a_downgrade_keeps_its_token(self):
        self.assert_clean(judge(grant(1, 2, 10, number=1) + grant(2.5, 3, 10, mode="r", number=2) + LATER))
        self.assert_rules(judge(grant(1, 2, 10) + LATER, grant(2.5, 3, 10, mode="r")), "tokens")

    def test_a_permits_token_that_was_overtaken_before_it_was_asked_for(self):
        pool = grant(150, 151, 20, "pool", "p3")
        self.assert_rules(judge(grant(1, 3, 11, "pool", "p1") + pool, grant(2, 4, 10, "pool", "p1")), "tokens")
        # Asked at the same time: either may have been granted first.
        self.assert_clean(judge(grant(1, 3, 11, "pool", "p1") + pool, grant(1.05, 4, 10, "pool", "p1")))

    def test_readers_of_stripes_have_no_token_that_counts(self):
        self.assert_clean(judge(grant(1, 2, 11, "table") + LATER_TABLE, grant(3, 4, 10, "table", "s")))
        self.assert_rules(judge(grant(1, 2, 11, "table") + LATER_TABLE, grant(3, 4, 10, "table")), "tokens")

    def test_a_writer_beside_the_reader_of_a_stripe(self):
        self.assert_rules(judge(grant(1, 3, 10, "table", "s") + LATER_TABLE, grant(2, 4, 11, "table")), "exclusion")
        self.assert_clean(judge(grant(1, 3, 10, "table", "s") + LATER_TABLE, grant(2, 4, 11, "table", "s")))

    # ---- delay

    def test_a_released_lock_has_no_delay(self):
        self.assert_clean(judge(grant(1, 2, 10, "slow") + LATER_SLOW, grant(2.001, 3, 11, "slow"), run=DELAY))

    def test_an_expired_lock_has_a_delay(self):
        expired = "1 1 got slow x 1 10 4" + "\n" + LATER_SLOW
        self.assert_clean(judge(expired, grant(4.501, 5, 11, "slow"), run=DELAY))
        self.assert_rules(judge(expired, grant(4.499, 5, 11, "slow"), run=DELAY), "delay")

    def test_the_delay_begins_behind_the_last_renewal(self):
        renewed = "1 1 got slow x 1 10 4\n 3 1 until 1 8\n" + LATER_SLOW
        self.assert_clean(judge(renewed, grant(8.501, 9, 11, "slow"), run=DELAY))
        self.assert_rules(judge(renewed, grant(8.499, 9, 11, "slow"), run=DELAY), "delay")

    def test_a_killed_holder_leaves_a_delay(self):
        killed = DELAY + "\n 2 dead b"
        self.assert_rules(judge(grant(4.2, 5, 11, "slow") + LATER_SLOW, "1 1 got slow x 1 10 4", run=killed), "delay")

    def test_a_lost_hold_that_is_released_late_leaves_a_delay(self):
        lost = "1 1 got slow x 1 10 4\n 3.9 1 lost 1\n 4.3 1 free 1\n"
        self.assert_rules(judge(lost + LATER_SLOW, grant(4.2, 5, 11, "slow"), run=DELAY), "delay")
        self.assert_clean(judge(lost + LATER_SLOW, grant(4.301, 5, 11, "slow"), run=DELAY))

    def test_other_locks_have_no_delay(self):
        self.assert_clean(judge("1 1 got stock x 1 10 4" + "\n" + LATER, grant(4.001, 5, 11), run=DELAY))

    # ---- sights

    def leads(self, begin, end, token, value, thread=1):
        return f"{begin - 0.2} {thread} campaigns lead {value}\n" + grant(begin, end, token, "lead", thread=thread)

    def observed(self, *sights, late="160 0 saw lead 30 z"):
        leaders = self.leads(1, 2, 10, "x") + self.leads(3, 4, 20, "y") + self.leads(150, 151, 30, "z")
        return judge(leaders, "\n".join(["0 0 observes lead", *sights, late]))

    def test_leaders_in_the_order_of_their_tokens(self):
        self.assert_clean(self.observed("1.1 0 saw lead 10 x", "1.2 0 saw lead 10 x", "3.1 0 saw lead 20 y"))
        self.assert_rules(self.observed("3.1 0 saw lead 20 y", "3.2 0 saw lead 10 x"), "sights")

    def test_a_leader_with_the_value_of_another(self):
        self.assert_rules(self.observed("1.1 0 saw lead 10 y"), "sights")

    def test_a_leader_whom_the_process_did_not_live_to_tell_of(self):
        self.assert_clean(self.observed("1.1 0 saw lead 11 x"))
        self.assert_rules(self.observed("1.1 0 saw lead 11 nobody"), "sights")

    def test_an_observer_that_hears_nothing_any_more(self):
        self.assert_rules(self.observed("1.1 0 saw lead 10 x", late=""), "sights")
        self.assert_rules(self.observed(late="200.5 0 saw lead 30 z"), "sights")

    def test_two_leaders(self):
        self.assert_rules(judge(self.leads(1, 3, 10, "x") + self.leads(150, 151, 30, "z"),
                                self.leads(2, 4, 11, "y")), "exclusion")

    # ---- order

    def waits(self, first_got, second_got):
        tokens = (10, 11) if first_got < second_got else (11, 10)
        return (f"10 1 ask fair x\n 10.1 1 queued fair\n {first_got} 1 got fair x 1 {tokens[0]} 90\n"
                f"{first_got + 0.1} 1 free 1\n" + grant(150, 151, 20, "fair"),
                f"10.2 1 ask fair x\n 10.3 1 queued fair\n {second_got} 1 got fair x 1 {tokens[1]} 90\n"
                f"{second_got + 0.1} 1 free 1\n")

    def test_the_order_of_arrival_is_right(self):
        verdict = judge(*self.waits(11, 12))
        self.assert_clean(verdict)
        self.assertEqual(verdict["ordered"], 2)

    def test_an_overtaking(self):
        self.assert_rules(judge(*self.waits(12, 11)), "order")

    def test_beside_a_fault_the_order_does_not_count(self):
        for more in ("11.2 begin 1 cut b\n 11.4 end 1", "8 begin 1 cut b\n 9.9 end 1", "0 setting max_lease_ms 6000"):
            self.assert_clean(judge(*self.waits(12, 11), run=RUN + "\n" + more))
        self.assert_rules(judge(*self.waits(12, 11), run=RUN + "\n6 begin 1 cut b\n7.9 end 1"), "order")

    def test_a_process_that_stalls_may_be_overtaken(self):
        a, b = self.waits(12, 11)
        self.assert_clean(judge(a + "\n 11.5 0 stalled 10.5", b))

    def test_requests_at_the_same_time_have_no_order(self):
        a, b = self.waits(12, 11)
        self.assert_clean(judge(a.replace("10.1 1 queued", "10.25 1 queued"), b))

    # ---- liveness

    def test_a_request_that_is_never_answered(self):
        self.assert_rules(judge("50 1 ask stock x\n" + LATER.replace(" 1 ", " 2 ")), "liveness")

    def test_a_request_that_only_the_end_has_answered(self):
        self.assert_rules(judge("50 2 ask stock x\n 200.5 2 refused stock x 11\n" + LATER), "liveness")
        self.assert_clean(judge("50 2 ask stock x\n 199.5 2 refused stock x 5\n" + LATER))

    def test_a_request_of_a_killed_process_needs_no_answer(self):
        self.assert_clean(judge(LATER, "50 1 ask stock x", run=RUN + "\n 60 dead b"))

    def test_a_lock_that_nobody_acquires_any_more(self):
        self.assert_rules(judge(grant(1, 2, 10)), "liveness")

    # ---- the end

    def test_a_key_that_is_left(self):
        self.assert_rules(judge(LATER, run=RUN + "\n 202 left server hf:{stock} 500"), "leftovers")
        self.assert_rules(judge(LATER, run=RUN + "\n 202 left server hf:{stock}:queue -1"), "leftovers")

    def test_a_mark_that_never_expires(self):
        self.assert_clean(judge(LATER, run=RUN + "\n 202 left server hf:{stock}:fence 59000"))
        self.assert_rules(judge(LATER, run=RUN + "\n 202 left server hf:{stock}:fence -1"), "leftovers")
        self.assert_rules(judge(LATER, run=RUN + "\n 202 left server hf:{stock}:fence 99000"), "leftovers")

    def test_a_process_that_does_not_end_well(self):
        for status in ("hung", "3", "-6"):
            self.assert_rules(judge(LATER, run=RUN.replace("closed b 0", f"closed b {status}")), "ends")

    # ---- updates

    def test_lost_updates_count_where_tokens_are_checked(self):
        self.assert_clean(judge(LATER, stock_checked="0 0 10\n1 1 11\n", stock_plain="0 0 0\n1 0 0\n"))
        self.assert_rules(judge(LATER, stock_checked="0 0 10\n1 0 11\n"), "updates")
        self.assertEqual(judge(LATER, stock_plain="0 0 0\n1 0 0\n")["plain"], (2, 1))


# Single changes of checker.py, each of which weakens a rule or forgets a fact.
WEAKENED = [
    ('return min([self.valid_until, *self.ends])', 'return min([self.valid_until, *self.ends[:1]])'),
    ('return min([self.valid_until, *self.ends])', 'return max([self.valid_until, *self.ends])'),
    ('return min([self.valid_until, *self.ends])', 'return min(self.ends or [self.valid_until])'),
    ('self.owner != other.owner and', 'self.owner[0] != other.owner[0] and'),
    ('self.owner != other.owner and', ''),
    ('"x" in (self.mode, other.mode)', 'self.mode == other.mode == "x"'),
    ('"x" in (self.mode, other.mode)', '"x" == self.mode'),
    ('"x" in (self.mode, other.mode)', '"x" == other.mode'),
    ('holds[rest[0]].valid_until = int(rest[1])', 'pass'),
    ('elif event in ("free", "lost"):', 'elif event == "free":'),
    ('elif event in ("free", "lost"):', 'elif event == "lost":'),
    ('belief.ends.append(self.dead[process])', 'pass'),
    ('if process not in self.dead:', 'if True:'),
    ('if process not in self.dead:', 'if False:'),
    ('rule in rules and begin <= time <= end', 'begin <= time <= end'),
    ('rule in rules and begin <= time <= end', 'rule in rules'),
    ('if other.end > belief.start]', 'if other.end > belief.start][-1:]'),
    ('active.append(belief)', 'active = [belief]'),
    ('active, limit = [], 3', 'active, limit = [], 4'),
    ('permits = sum(int(b.mode[1:])', 'permits = sum(1'),
    ('(belief.asked, 0)) - 1', '(belief.start, 0)) - 1'),
    ('if belief.token <= former:', 'if False:'),
    ('former = last if belief.mode == "x" else last_writer', 'former = last_writer'),
    ('former = last if belief.mode == "x" else last_writer', 'former = last'),
    ('if former and belief.token <= former.token', 'if former and belief.token < former.token'),
    ('and not same_grant', ''),
    ('former.owner == belief.owner and former.token == belief.token', 'former.token == belief.token'),
    ('if last is None or belief.token > last.token:', 'if True:'),
    ('(last_writer is None or belief.token > last_writer.token)', 'last_writer is None'),
    ('if belief.mode == "s":', 'if False:'),
    ('if belief.mode == "s":', 'if belief.lock == "table":'),
    ('former.valid_until + 1_000_000 *', 'former.end + 1_000_000 *'),
    ('1_000_000 * int(history.settings.get("delay_ms", 0))', '0'),
    ('former.freed is not None and former.freed <= belief.start', 'former.freed is not None'),
    ('former.freed is not None and former.freed <= belief.start', 'False'),
    ('history.of_locks()["slow"]', 'history.of_locks()["stock"]'),
    ('if token < former[1]:', 'if False:'),
    ('if token < former[1]:', 'if token <= former[1]:'),
    ('value not in history.campaigns or', ''),
    ('or values.get(token, value) != value', ''),
    ('or values.get(token, value) != value', 'or values.get(token) != value'),
    ('is_well and not any(', 'is_well and not seen and not any('),
    ('history.marks["calm"] < time < history.marks["closing"] for', 'history.marks["calm"] < time for'),
    ('first_queued < belief.asked and not', 'False and not'),
    ('first_queued < belief.asked and not', 'not'),
    ('and not stalled(history, later.asked, later.start)', ''),
    ('begin = max(begin, (fault[1] or last) + pause)', 'pass'),
    ('begin = max(begin, (fault[1] or last) + pause)', 'begin = 1 << 62'),
    ('begin <= b.asked and b.start <= min(fault[0], last)]', 'begin <= b.asked]'),
    ('self.marks.get("start", 0) + pause', 'self.marks.get("start", 0)'),
    ('answered is None or answered > closing', 'answered is None'),
    ('answered is None or answered > closing', 'answered and answered > closing'),
    ('if not any(b.start > calm for b in beliefs):', 'if not beliefs:'),
    ('left_ms < 0 or left_ms > longest or', 'left_ms > longest or'),
    ('left_ms < 0 or left_ms > longest or', 'left_ms < 0 or'),
    ('left_ms > longest or should_be_gone(key)', 'left_ms > longest'),
    ('if status != "0":', 'if status == "hung":'),
    ('lost + (replaced != read)', 'lost'),
    ('if verdict["checked"][1]:', 'if False:'),
]


def failures_of(source):
    """How many of the histories above are judged wrongly by that text of the checker."""
    exec(compile(source, "checker.py", "exec"), checker.__dict__)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Planted).run(result)
    return len(result.failures) + len(result.errors)


def look_at_weakened_checkers():
    with open(checker.__file__, encoding="utf-8") as file:
        source = file.read()
    assert failures_of(source) == 0
    survivors = []
    for text, instead in WEAKENED:
        assert source.count(text) >= 1, f"checker.py does not say this any more: {text}"
        if failures_of(source.replace(text, instead, 1)) == 0:
            survivors.append(f"{text}  ->  {instead}")
    print(f"{len(WEAKENED) - len(survivors)} of {len(WEAKENED)} weakened checkers are found", *survivors, sep="\n")
    return bool(survivors)


if __name__ == "__main__":
    if sys.argv[1:] == ["--weakened"]:
        sys.exit(look_at_weakened_checkers())
    unittest.main(verbosity=1)
