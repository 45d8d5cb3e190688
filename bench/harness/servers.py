"""The servers of a run: started on a free port, gone when the run is, and asked for what a contestant cost them."""

import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time

import redis

# Even kill -9 of the harness takes them along.
WITH_THE_PARENT = ["setpriv", "--pdeathsig", "TERM"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def processor_time_us(pid):
    """Of all threads that the process has now, in microseconds."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path) as file:
                total += int(file.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # that thread has just ended
    return total / 1e3


class Server:
    """One process with a directory of its own. A subclass says how it is started and when it answers."""

    patience = 60

    def __init__(self, directory=None):
        self.directory = tempfile.mkdtemp(prefix="holdfast-bench-", dir=directory)
        self.port, self.second_port = free_port(), free_port()
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.process = subprocess.Popen(
            WITH_THE_PARENT + self.command(), stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
            cwd=self.directory)
        self.wait_until_up()

    def wait_until_up(self):
        end = time.monotonic() + self.patience
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(self.log.name, errors="replace") as log:
                    tail = log.read()[-2000:]
                self.stop()
                raise RuntimeError(f"{type(self).__name__} would not start:\n{tail}")
            time.sleep(0.05)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def processor_time_us(self):
        return processor_time_us(self.process.pid)

    def commands(self):
        """How often each command ran, where the server counts that."""
        return {}

    def forget_times(self):
        pass

    def script_times_us(self):
        """How long each run of a script took, where one is timed."""
        return []

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Redis(Server):
    timed_script = ""

    @property
    def socket_path(self):
        return os.path.join(self.directory, "redis.sock")

    def command(self):
        return ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket", self.socket_path,
                "--dir", self.directory, "--save", "", "--appendonly", "no"]

    def answers(self):
        try:
            self.admin = redis.Redis(unix_socket_path=self.socket_path)
            return self.admin.ping()
        except redis.RedisError:
            return False

    def database(self, number):
        return redis.Redis(unix_socket_path=self.socket_path, db=number)

    def contestants_environment(self):
        return {"HOLDFAST_BENCH_PORT": str(self.port), "HOLDFAST_BENCH_SOCKET": self.socket_path}

    def commands(self):
        stats = self.admin.info("commandstats")
        return {name.removeprefix("cmdstat_"): (int(row["calls"]), float(row["usec"])) for name, row in stats.items()}

    def time_script(self, sha1):
        """From now on runs of that script are timed; the log is long enough for a slice."""
        self.timed_script = sha1
        self.admin.config_set("slowlog-max-len", 20_000)
        # Not 0: then what a script calls is logged as well, within the script's own time.
        self.admin.config_set("slowlog-log-slower-than", 10)

    def forget_times(self):
        if self.timed_script:
            self.admin.slowlog_reset()

    def script_times_us(self):
        """Of the timed script, since they were forgotten."""
        if not self.timed_script:
            return []
        wanted = f"EVALSHA {self.timed_script} ".encode()
        return [each["duration"] for each in self.admin.slowlog_get(-1) if each["command"].startswith(wanted)]

    def count_locks(self, names):
        """How many of these are held now."""
        keys = [f"hf:{{{name}}}" for name in names]
        return sum(self.admin.exists(*keys[i:i + 1000]) for i in range(0, len(keys), 1000))

    def used_memory(self):
        return self.admin.info("memory")["used_memory"]
