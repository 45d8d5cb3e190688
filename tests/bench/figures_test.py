"""What the harness of the benchmarks makes of what contestants report."""

import math
import os
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.environ["HOLDFAST_TREE"], "bench"))

from harness import contest, growth, report, team, workloads  # noqa: E402

HIGHER, LOWER = workloads.HIGHER, workloads.LOWER


def a_workload(better=LOWER, targets=(), **more):
    return workloads.Workload("some", "A title with <angles>", "us", better, lambda measured: measured.p50(), "bare",
                              targets=list(targets), **more)


def a_slice(p50, cycles=10, cpu_us=100.0, sent=20, **more):
    return team.Slice([{"cycles": cycles, "elapsed_us": 1e6, "cpu_us": cpu_us, "p50_us": p50, **more}],
                      {"evalsha": (sent, 30.0), "hget": (50, 10.0)}, 200.0, {"evalsha"})


def visits(*each):
    """One process; a visit is (who, entered, left)."""
    return team.Slice([{"cycles": len(each), "elapsed_us": 1e6, "cpu_us": 1.0, "shares": [1, 3],
                        "visitor": [one[0] for one in each], "entered_us": [one[1] for one in each],
                        "left_us": [one[2] for one in each]}])


class ASlice(unittest.TestCase):
    def test_costs_are_per_cycle_and_count_what_clients_sent(self):
        self.assertEqual(a_slice(5.0).costs(), {"client_cpu_us": 10.0, "server_cpu_us": 20.0, "commands_per_cycle": 2.0,
                                                "server_calls_per_cycle": 7.0, "called_us": 1.0, "lua_us": 2.0})

    def test_late_cycles_are_paid_for_but_count_for_no_figure(self):
        late = a_slice(5.0, late_cycles=10)
        self.assertEqual(late.costs()["commands_per_cycle"], 1.0)
        self.assertEqual(late.per_second(), 10.0)

    def test_a_gap_is_between_two_different_holders(self):
        measured = visits((0, 0, 10), (0, 11, 20), (1, 25, 30))
        self.assertEqual(measured.gaps(), [5])
        self.assertAlmostEqual(measured.fairness(), 1 / 3)

    def test_two_holders_at_once_are_told(self):
        with self.assertRaisesRegex(team.Silent, "two holders at once"):
            visits((0, 0, 10), (1, 9, 20)).gaps()


class AContest(unittest.TestCase):
    def reduce(self, workload, slices):
        one = contest.Contest(workload, None)
        one.floor = type("Floor", (), {"name": "bare"})
        return one.reduce(slices)

    def test_ratios_are_to_the_floor_of_the_same_round(self):
        found = self.reduce(a_workload(), {"bare": a_slice(4.0, cpu_us=50.0), "holdfast": a_slice(5.0)})
        self.assertEqual(found["holdfast"]["ratio"], 1.25)
        self.assertEqual(found["holdfast"]["client_cpu_ratio"], 2.0)
        self.assertEqual(found["holdfast"]["commands_ratio"], 1.0)

    def test_what_holdfast_says_may_be_added_to_the_floor(self):
        found = self.reduce(a_workload(floor_adds=lambda own: own.p50()), {"bare": a_slice(5.0), "holdfast": a_slice(5.0)})
        self.assertEqual(found["holdfast"]["floor"], 10.0)
        self.assertEqual(found["bare"]["ratio"], 0.5)

    def test_without_the_floors_slice_there_is_no_ratio(self):
        self.assertNotIn("ratio", self.reduce(a_workload(), {"holdfast": a_slice(5.0)})["holdfast"])


def objects(workload, **rounds):
    """Contestants by name, each with the figures of its rounds, the ratio half of them."""
    entries = []
    for name, values in rounds.items():
        entry = contest.Entry(name.replace("_", "-"), contest.AS_THEY_ARE)
        entry.rounds = [{"value": value, "ratio": value / 2} for value in values]
        entries.append(entry)
    return contest.to_json(workload, entries)


class Results(unittest.TestCase):
    at_most_1 = workloads.Target("ratio", LOWER, 1.0)

    def test_are_medians_with_the_range_of_the_rounds(self):
        (own,) = objects(a_workload(targets=[self.at_most_1]), holdfast=[9.0, 1.0, 2.0])
        self.assertEqual((own["value"], own["ratio"], own["ratio_min"], own["ratio_max"]), (2.0, 1.0, 0.5, 4.5))
        self.assertEqual((own["rounds"], own["target"], own["reached"]), (3, 1.0, True))

    def test_a_round_without_a_figure_is_left_out(self):
        (own,) = objects(a_workload(), holdfast=[math.nan, 3.0])
        self.assertEqual(own["value"], 3.0)

    def test_what_was_not_measured_is_not_reached(self):
        workload = a_workload(targets=[workloads.Target("bytes", LOWER, 600)])
        found = objects(workload, holdfast=[1.0])
        self.assertFalse(found[0]["reached"])
        self.assertEqual(report.verdicts(workload, found, []), ["bytes at most 600, cores as they are: not measured: NO"])

    def test_bounds_go_both_ways(self):
        for target, reached in ((workloads.Target("ratio", HIGHER, 1.0), True), (workloads.Target("ratio", HIGHER, 1.1), False),
                                (workloads.Target("ratio", LOWER, 1.0), True), (workloads.Target("ratio", LOWER, 0.9), False)):
            self.assertEqual(target.reached(1.0), reached, target.text())

    def test_a_peer_that_is_ahead_is_told_by_name(self):
        for better, ahead in ((LOWER, "redlock"), (HIGHER, "etcd")):
            workload = a_workload(better)
            found = objects(workload, holdfast=[2.0], redlock=[1.0], etcd=[3.0], bare=[9.0 if better == HIGHER else 0.1])
            self.assertEqual([each["contestant"] for each in contest.behind(workload, found)], [ahead])

    def test_tables_and_charts_are_well_formed(self):
        workload = a_workload(HIGHER, [self.at_most_1])
        found = objects(workload, holdfast=[2.0], redis_py=[1.0])
        text = report.markdown(workload, found, [("curator", "no Java")], ["x: NO"])
        self.assertRegex(text, r"(?s)\| holdfast \|.*\| redis-py \|.*- x: NO\n- without curator: no Java\n")
        self.assertEqual({line.count("|") for line in text.splitlines() if line.startswith("|")}, {5})
        drawn = xml.etree.ElementTree.fromstring(report.chart(workload, found))
        self.assertIn("A title with <angles>", "".join(drawn.itertext()))
        points = [{"x": x, "value": x, "lowest": x, "highest": x + 1} for x in (1, 10)]
        xml.etree.ElementTree.fromstring(growth.plot(growth.ALL["growth.callers"], points))


if __name__ == "__main__":
    unittest.main()
