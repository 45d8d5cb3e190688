"""The floor of throughput: redis-benchmark with the same two scripts.

redis-benchmark sends one command over and over, so a cycle is measured in two halves: so many acquires of names that
nobody holds, then the releases of exactly these. For the second half to find them, both draw the same names: the
generator's seed is fixed by a small library that is loaded in front (contestants/same_names.c). That every name was
acquired and every one released is checked by the number of keys.
"""

import os
import subprocess
import time

from .team import Slice, difference

TOKEN = 12345


class RedisBenchmark:
    name = "redis-benchmark"

    # 64 requests in flight, as 64 callers have; over two links, because one link is slower.
    LINKS, PIPELINE = 2, 32
    FENCE = "hf:{bench}:fence"

    # Its own, so that nobody else's keys are counted, or deleted.
    DATABASE = 1

    def __init__(self, programs, server):
        self.programs, self.server = programs, server
        self.keys = server.database(self.DATABASE)
        self.requests = 20_000 // (self.LINKS * self.PIPELINE) * (self.LINKS * self.PIPELINE)
        bare = [os.path.join(programs, "contestant_bare")]
        subprocess.run(bare, check=True, input="", capture_output=True, text=True,  # it loads the scripts
                       env={**os.environ, **server.contestants_environment()})
        for step in ("acquire", "release"):
            words = subprocess.run(bare + [f"print={step}", f"token={TOKEN}"], check=True, capture_output=True, text=True)
            setattr(self, step, [self.one_of_many(word) for word in words.stdout.splitlines()])
        self.start_up = 0.0
        self.start_up = min(self.half(self.acquire, self.LINKS * self.PIPELINE)[1] for _ in range(3))

    @staticmethod
    def one_of_many(word):
        return "hf:{__rand_int__}" if word == "hf:{bench}" else word

    def run(self, seconds):
        """As many halves as fit into the time, at least one of each."""
        before, cpu_before = self.server.commands(), self.server.processor_time_us()
        end = time.monotonic() + seconds
        elapsed = cpu = cycles = 0
        while cycles == 0 or time.monotonic() < end:
            self.keys.flushdb()
            took, used = self.half(self.acquire)
            self.expect_keys(self.requests + 1)
            self.keys.set(self.FENCE, TOKEN)
            took_too, used_too = self.half(self.release)
            self.expect_keys(1)
            elapsed, cpu, cycles = elapsed + took + took_too, cpu + used + used_too, cycles + self.requests
        commands = difference(before, self.server.commands())
        report = {"cycles": cycles, "elapsed_us": elapsed * 1e6, "cpu_us": cpu * 1e6}
        return Slice([report], commands, self.server.processor_time_us() - cpu_before, {"evalsha"})

    def half(self, words, requests=None):
        """Seconds, and processor time without what the program itself needs to start and end."""
        requests = requests or self.requests
        command = ["redis-benchmark", "-p", str(self.server.port), "-c", str(self.LINKS), "-P", str(self.PIPELINE),
                   "--dbnum", str(self.DATABASE),
                   "-n", str(requests), "-r", "2000000000", "--csv", *words]
        environment = {**os.environ, "LD_PRELOAD": os.path.join(self.programs, "same_names.so")}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = process.stdout.read()
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        try:
            rate = float(said.splitlines()[-1].rsplit('","')[1])
        except (IndexError, ValueError):
            raise RuntimeError(f"redis-benchmark said: {said}{process.stderr.read()}") from None
        return requests / rate, used.ru_utime + used.ru_stime - self.start_up

    def expect_keys(self, wanted):
        found = self.keys.dbsize()
        if found != wanted:
            raise RuntimeError(f"redis-benchmark left {found} keys instead of {wanted}: it measured something else")

    def stop(self):
        self.keys.flushdb()
