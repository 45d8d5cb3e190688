#!/usr/bin/env bash
# Two processes compete for one lock, on a local server that the first of them starts.
# Usage: examples/demo.sh path/to/holdfast
set -euo pipefail
holdfast=${1:?usage: $0 path/to/holdfast}
box=$(mktemp -d /tmp/holdfast-demo.XXXXXX)
export HOLDFAST_HOME=$box/home
export HOLDFAST_URL=local # a server of its own is meant here
unset HOLDFAST_HELD

clean_up() {
    "$holdfast" server stop --force >/dev/null 2>&1 || true
    rm -rf "$box"
}
trap clean_up EXIT

say() { printf '\n%s\n' "$*"; }
run() { printf '  $ holdfast %s\n' "$*"; }
# $1: who speaks. Puts that in front of every line.
as() { sed -u "s/^/    $1 | /"; }
fail() {
    printf '\ndemo: %s\n' "$*" >&2
    exit 1
}

job='echo "has the lock, token $HOLDFAST_TOKEN"; touch "$0"
     for step in 1 2 3 4; do sleep 0.4; echo "step $step of 4"; done; echo "is done"'

say "First takes the lock 'demo' and works for a while. There is no server yet, so it starts one."
run "run demo -- first-job"
"$holdfast" run demo -- sh -c "$job" "$box/first" > >(as first) 2>&1 &
first=$!
for _ in $(seq 600); do [ -e "$box/first" ] && break; sleep 0.05; done
[ -e "$box/first" ] || fail "the first did not get the lock"

say "Second does not want to wait. It is refused, and told who has the lock."
run "run --no-wait demo -- second-job"
status=0
"$holdfast" run --no-wait demo -- sh -c 'echo "must not run"' > >(as second) 2>&1 || status=$?
sleep 0.1
echo "    second | exit status $status"
[ "$status" -eq 1 ] || fail "the second should have been refused with status 1"

say "Third waits in the queue, and acquires the lock when the first is done."
run "run demo -- third-job"
"$holdfast" run demo -- sh -c 'echo "has the lock, token $HOLDFAST_TOKEN"; touch "$0"' "$box/third" > >(as third) 2>&1 &
third=$!
[ ! -e "$box/third" ] || fail "the third was let in while the first had the lock"

wait "$first" || fail "the first ended with status $?"
wait "$third" || fail "the third ended with status $?"
[ -e "$box/third" ] || fail "the third did not run"
sleep 0.1

say "All three behaved: one at a time, and tokens that grow."
