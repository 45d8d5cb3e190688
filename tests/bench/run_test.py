"""`bench/run` as a whole, in turns far too short to measure anything."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

TREE = os.environ["HOLDFAST_TREE"]


def run(*words, **environment):
    return subprocess.run([os.path.join(TREE, "bench", "run"), *words], text=True, capture_output=True, timeout=300,
                          env={**os.environ, **environment})


class Bench(unittest.TestCase):
    def test_measures_and_leaves_tables_charts_and_figures(self):
        # Seconds for a slice. A hand-over takes 5 ms, the others some 100 us.
        names = {"uncontended.tcp": 0.1, "parallel.async": 0.1, "handover": 0.5, "readmostly": 0.1, "quorum": 0.1}
        with tempfile.TemporaryDirectory() as place:
            everything = os.path.join(place, "all.json")
            found = []
            for seconds in sorted(set(names.values())):
                those = [name for name, own in names.items() if own == seconds]
                done = run(*those, "--rounds", "1", "--seconds", str(seconds), "--results", place, "--json", everything,
                           HOLDFAST_BENCH_LEASE_MS="1000")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("without", done.stderr)
                with open(everything) as file:
                    found += [json.loads(line) for line in file]
            for name in names:
                own = [each for each in found if each["bench"] == name and each["contestant"] == "holdfast"]
                self.assertEqual([each["cores"] for each in own], ["as they are", "kept awake"], name)
                for each in own:
                    self.assertGreater(each["value"], 0, name)
                    self.assertGreater(each["ratio"], 0, name)
                    self.assertGreater(each["client_cpu_us"], 0, name)
                    self.assertGreater(each["server_cpu_us"], 0, name)
                    # On a busy machine a waiter waits long enough to poll.
                    self.assertAlmostEqual(each["commands_per_cycle"], 6 if name == "quorum" else 2,
                                           delta=2 if name == "handover" else 0.5, msg=name)
                for kind in ("json", "md", "svg"):
                    self.assertTrue(os.path.getsize(os.path.join(place, f"{name}.{kind}")), name)
            self.assertTrue(os.path.exists(os.path.join(place, "machine.md")))

    def test_shows_how_cost_grows(self):
        with tempfile.TemporaryDirectory() as place:
            done = run("growth.processes", "--rounds", "1", "--seconds", "0.05", "--results", place)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(len(glob.glob(os.path.join(place, "growth.processes.*"))), 2)

    def test_says_what_it_does_not_know(self):
        done = run("uncontended")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no workload 'uncontended'; there are uncontended.tcp,", done.stderr)

    def test_what_could_not_be_measured_is_told_and_fails(self):
        with tempfile.TemporaryDirectory() as place:
            done = run("uncontended.unix", "--results", place, HOLDFAST_BENCH_BIN=place)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("not measured: uncontended.unix", done.stderr)


if __name__ == "__main__":
    unittest.main()
