#!/usr/bin/python3 -B
"""Judges what processes have believed:  checker.py DIRECTORY

It knows nothing of Redis, nor of holdfast: only the histories that the workers have written (tests/chaos/worker/
history.cpp describes their lines), the list of faults (run.history), and the stores. All times are nanoseconds of
CLOCK_BOOTTIME, which all processes of a machine share. These are its rules:

  exclusion   no two beliefs that conflict at one instant. A belief begins at "got". It ends at "free" (before the
              release is asked), at "lost", when its last known validity ends, or when its process is killed
  tokens      of two beliefs of which one writes, the later one has the greater token; a semaphore's grant has a greater
              token than those that were known before it was asked for
  delay       of a lock with a delay: who did not release it is followed only when validity and delay are over
  sights      an observer is told of leaders in the order of their tokens, each with the value that it campaigned with,
              and hears of somebody after the faults
  order       in quiet times: what the server had queued before another request was made is granted before that
  liveness    when the faults are over, everything asked for before is answered, and every lock is acquired again
  leftovers   in the end no key of a lock is left, and the others expire
  ends        every process ends by itself, without an error
  updates     no update of a store that checks tokens is lost (those of a store that does not are only counted)

"outside" lines of run.history are times in which docs/guarantees.md promises less: what breaks then is told apart.
"""

import bisect
import collections
import glob
import os
import sys

S = 1_000_000_000


class Belief:
    def __init__(self, lock, mode, owner, token, asked, start, until):
        self.lock, self.mode, self.owner, self.token, self.asked, self.start = lock, mode, owner, token, asked, start
        self.queued, self.valid_until, self.ends = None, until, []  # `ends`: what ended it before its validity
        self.freed, self.value = None, None  # when a release was asked; what it campaigned with

    @property
    def end(self):
        return min([self.valid_until, *self.ends])

    def conflicts_with(self, other):
        # A hold that reads and the same thread's upgrade of it are one.
        return self.owner != other.owner and "x" in (self.mode, other.mode)

    def __str__(self):
        return f"{self.owner} {self.mode} token {self.token} from {self.start / S:.6f} to {self.end / S:.6f} s"


class History:
    """All lines of a run, as beliefs, requests and faults."""

    def __init__(self, directory):
        self.directory = directory
        self.beliefs, self.requests, self.stalls, self.outside, self.left = [], [], [], [], []
        self.settings, self.marks, self.faults, self.dead, self.closed = {}, {}, {}, {}, {}
        self.sights, self.campaigns = {}, set()  # process -> (time, token, value); the values
        with open(os.path.join(directory, "run.history"), encoding="utf-8") as file:
            for line in file:
                self.take_event(line.rstrip("\n").split(" "))
        for path in sorted(glob.glob(os.path.join(directory, "*.history"))):
            name = os.path.basename(path)[:-len(".history")]
            if name != "run":
                self.take_worker(name, path)

    def take_event(self, words):
        time, event, rest = int(words[0]), words[1], words[2:]
        if event == "setting":
            self.settings[rest[0]] = " ".join(rest[1:])
        elif event == "begin":
            self.faults[rest[0]] = [time, None, rest[1].replace("_", " "), " ".join(rest[2:])]
        elif event == "end":
            self.faults[rest[0]][1] = time
        elif event == "outside":
            self.outside.append((int(rest[0]), int(rest[1]), rest[2].split(","), " ".join(rest[3:])))
        elif event == "dead":
            self.dead[rest[0]] = time
        elif event == "closed":
            self.closed[rest[0]] = rest[1]
        elif event == "left":
            self.left.append((rest[0], " ".join(rest[1:-1]), int(rest[-1])))
        else:
            self.marks.setdefault(event, time)  # start, calm, closing, over

    def take_worker(self, process, path):
        pending, queued, holds, values = {}, {}, {}, {}
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for line in text[:text.rfind("\n") + 1].splitlines():  # the last line may be being written
            time, thread, event, *rest = line.split()
            time, owner = int(time), (process, int(thread))
            if event == "ask":
                pending[owner, rest[0]] = time
            elif event == "queued":
                queued[owner, rest[0]] = time
            elif event == "got":
                asked = pending.pop((owner, rest[0]), time)  # "ask" is missing only behind a downgrade of both
                belief = Belief(rest[0], rest[1], owner, int(rest[3]), asked, time, int(rest[4]))
                belief.queued = queued.pop((owner, rest[0]), None)
                belief.value = values.pop((owner, rest[0]), None)
                if process in self.dead:
                    belief.ends.append(self.dead[process])
                holds[rest[2]] = belief
                self.beliefs.append(belief)
                self.requests.append((asked, time, owner, rest[0]))
            elif event == "until":
                holds[rest[0]].valid_until = int(rest[1])
            elif event in ("free", "lost"):
                holds[rest[0]].ends.append(time)
                if event == "free":
                    holds[rest[0]].freed = time
            elif event == "campaigns":
                values[owner, rest[0]] = rest[1]
                self.campaigns.add(rest[1])
            elif event == "observes":
                self.sights[process] = []
            elif event == "saw":
                self.sights[process].append((time, int(rest[1]), rest[2]))
            elif event == "refused":
                self.requests.append((pending.pop((owner, rest[0])), time, owner, rest[0]))
            elif event == "stalled":
                self.stalls.append((int(rest[0]), time))
        if process not in self.dead:
            self.requests += [(asked, None, owner, lock) for (owner, lock), asked in pending.items()]

    def unanswered(self, since):
        """The requests that were made before that time and are not answered yet."""
        return [request for request in self.requests if request[0] < since and request[1] is None]

    def of_locks(self):
        locks = collections.defaultdict(list)
        for belief in sorted(self.beliefs, key=lambda b: b.start):
            locks[belief.lock].append(belief)
        return locks

    def excuse(self, rule, time):
        """The words that say why that rule need not hold at that time."""
        return next((words for begin, end, rules, words in self.outside if rule in rules and begin <= time <= end), None)

    def waits_in_quiet_times(self):
        # A server that was started a short while ago is asked for nothing, so nothing is queued there.
        pause = 2_000_000 * int(self.settings.get("max_lease_ms", 0))
        waits = [b for b in self.beliefs if b.queued is not None]
        begin, last = self.marks.get("start", 0) + pause, self.marks.get("closing", 1 << 62)
        for fault in sorted(self.faults.values(), key=lambda f: f[0]):
            yield [b for b in waits if begin <= b.asked and b.start <= min(fault[0], last)]
            begin = max(begin, (fault[1] or last) + pause)
        yield [b for b in waits if begin <= b.asked and b.start <= last]


def exclusion(history):
    for lock, beliefs in history.of_locks().items():
        active, limit = [], 3
        for belief in (b for b in beliefs if b.end > b.start):
            active = [other for other in active if other.end > belief.start]
            for other in active:
                if other.conflicts_with(belief):
                    together = (min(other.end, belief.end) - belief.start) / S
                    yield belief.start, f"{lock}: two believe for {together:.6f} s: {other} / {belief}"
            active.append(belief)
            permits = sum(int(b.mode[1:]) for b in active if b.mode.startswith("p"))
            if permits > limit:
                yield belief.start, f"{lock}: {permits} permits are out, of {limit}: {' / '.join(map(str, active))}"


def tokens(history):
    for lock, beliefs in history.of_locks().items():
        last, last_writer, known = None, None, []  # known: (time, greatest token that was known then)
        for belief in (b for b in beliefs if b.end > b.start):
            if belief.mode.startswith("p"):
                at = bisect.bisect_left(known, (belief.asked, 0)) - 1
                former = known[at][1] if at >= 0 else 0
                known.append((belief.start, max(belief.token, known[-1][1] if known else 0)))
                if belief.token <= former:
                    yield belief.start, f"{lock}: {former} was known before {belief}"
                continue
            if belief.mode == "s":
                continue
            former = last if belief.mode == "x" else last_writer
            # A downgrade keeps the token.
            same_grant = former and belief.mode == "r" and former.owner == belief.owner and former.token == belief.token
            if former and belief.token <= former.token and not same_grant:
                yield belief.start, f"{lock}: the later token is not greater: {former} / {belief}"
            if last is None or belief.token > last.token:
                last = belief
            if belief.mode == "x" and (last_writer is None or belief.token > last_writer.token):
                last_writer = belief


def delay(history):
    beliefs = history.of_locks()["slow"]
    for former, belief in zip(beliefs, beliefs[1:]):
        free_from = former.valid_until + 1_000_000 * int(history.settings.get("delay_ms", 0))
        is_released = former.freed is not None and former.freed <= belief.start
        if not is_released and belief.start < free_from:
            yield belief.start, f"slow: within the delay, which ends at {free_from / S:.6f}: {former} / {belief}"


def sights(history):
    values = {b.token: b.value for b in history.beliefs if b.value is not None}
    for process, seen in history.sights.items():
        for former, (time, token, value) in zip([(0, 0, "")] + seen, seen):
            if token < former[1]:
                yield time, f"{process} saw token {token} after {former[1]}"
            if value not in history.campaigns or values.get(token, value) != value:
                yield time, f"{process} saw {value} with token {token}, of {values.get(token)}"
        is_well = history.closed.get(process) == "0"
        if is_well and not any(history.marks["calm"] < time < history.marks["closing"] for time, *_ in seen):
            yield history.marks["calm"], f"{process} has seen nobody lead since the faults were over"


def order(history):
    for waits in history.waits_in_quiet_times():
        later, first_queued = None, 1 << 62
        for belief in sorted(waits, key=lambda b: -b.token):
            if later and first_queued < belief.asked and not stalled(history, later.asked, later.start):
                yield belief.start, f"{belief.lock}: {belief}, asked at {belief.asked / S:.6f}, overtook {later}, " \
                                    f"queued at {later.queued / S:.6f}"
            if belief.queued < first_queued:
                later, first_queued = belief, belief.queued


def stalled(history, begin, end):
    return any(until >= begin and since <= end for since, until in history.stalls)


def liveness(history):
    calm, closing = history.marks["calm"], history.marks["closing"]
    for asked, answered, owner, lock in history.requests:
        if asked < calm and (answered is None or answered > closing):
            yield asked, f"{lock}: {owner} asked {(closing - asked) / S:.1f} s before the end; no answer"
    for lock, beliefs in history.of_locks().items():
        if not any(b.start > calm for b in beliefs):
            yield calm, f"{lock}: nobody has acquired it since the faults were over"


def should_be_gone(key):
    """Whether the key belongs to a hold or a waiter. Tokens are remembered, and clients are known, for a while."""
    return not key.startswith("hf:client:") and not key.endswith(":fence")


def leftovers(history):
    longest = max(int(history.settings.get("fence_retention_ms", 0)), 90_000)
    for server, key, left_ms in history.left:
        if left_ms < 0 or left_ms > longest or should_be_gone(key):
            yield history.marks.get("over", 0), f"{server}: the key {key} is left, for {left_ms} ms"


def ends(history):
    for process, status in history.closed.items():
        if status != "0":
            yield history.marks["closing"], f"{process} ended with {status}"


def updates(history, suffix):
    """How many updates the stores of that kind have, and how many of them were lost."""
    made = lost = 0
    for path in glob.glob(f"{history.directory}/*{suffix}.log"):
        with open(path, encoding="utf-8") as file:
            for replaced, read, _ in (line.split() for line in file):
                made, lost = made + 1, lost + (replaced != read)
    return made, lost


def judge(history):
    verdict = {"settings": history.settings, "failures": [], "excused": [], "overlaps": 0, "overlaps_outside": 0}
    for rule in (exclusion, tokens, delay, sights, order, liveness, leftovers, ends):
        for time, text in rule(history):
            words = history.excuse(rule.__name__, time)
            verdict["excused" if words else "failures"].append(f"{rule.__name__}: {text}" + f" [{words}]" * bool(words))
            if rule is exclusion:
                verdict["overlaps_outside" if words else "overlaps"] += 1
    verdict["plain"], verdict["checked"] = (updates(history, suffix) for suffix in (".plain", ".checked"))
    if verdict["checked"][1]:
        verdict["failures"].append(f"updates: {verdict['checked'][1]} were lost although tokens were checked")
    times = [time for begin, end, *_ in history.faults.values() for time in (begin, end or begin)]
    verdict["minutes"] = (max(times, default=0) - min(times, default=0)) / S / 60
    verdict["faults"] = collections.Counter(kind for _, _, kind, _ in history.faults.values())
    verdict["holds"] = len(history.beliefs)
    verdict["ordered"] = sum(len(waits) for waits in history.waits_in_quiet_times())
    return verdict


if __name__ == "__main__":
    result = judge(History(sys.argv[1]))
    for text in result["excused"] + [f"FAILED: {text}" for text in result["failures"]]:
        print(text)
    sys.exit(bool(result["failures"]))
