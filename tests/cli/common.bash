# What the tests of the command share. Every test has a HOLDFAST_HOME, and so a local server, of its own; whatever
# was started is ended by its pid.
#
# No test measures speed: waits are for a condition and generous, and what is compared are instants that the
# processes wrote down themselves.

bats_require_minimum_version 1.5.0

setup() {
    # Bash ignores that such a line fails.
    if grep -n '^ *! ' "$BATS_TEST_FILENAME"; then echo 'say `run !`'; return 1; fi
    : "${HOLDFAST_BIN:?names the binary to test}"
    export -n HOLDFAST_BIN HOLDFAST_DEMO # the command says of variables that it does not know
    unset HOLDFAST_MAX_LEASE HOLDFAST_HELD HOLDFAST_NAME HOLDFAST_TOKEN
    export HOLDFAST_URL=local HOLDFAST_CONFIG=/dev/null
    BOX=$(mktemp -d /tmp/hf-cli.XXXXXX)
    export BOX HOLDFAST_HOME=$BOX/home BIN=$HOLDFAST_BIN
    started=()
}

teardown() {
    local pid
    for pid in "${started[@]}" $(cat "$HOLDFAST_HOME/redis.pid" "$BOX"/*.pid 2>/dev/null); do
        kill -CONT "$pid" 2>/dev/null || true
        kill -KILL "$pid" 2>/dev/null || true
    done
    rm -rf "$BOX"
}

holdfast() { "$HOLDFAST_BIN" "$@"; }

# Starts holdfast in the background; its pid is in $last. A shell makes background jobs deaf to INT and QUIT, which
# must not be: signals are what is tested. Output goes to $BOX/out.
start() {
    env --default-signal=INT,QUIT "$HOLDFAST_BIN" "$@" </dev/null >>"$BOX/out" 2>&1 3>&- &
    last=$!
    started+=("$last")
}

# The exit status of a started one, in $status. Never waits for ever: every command here ends by itself.
finish() {
    status=0
    wait "$1" || status=$?
}

wait_until() {
    local tries
    for ((tries = 0; tries < 600; ++tries)); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    echo "never came true: $*" >&2
    cat "$BOX/out" >&2 || true
    return 1
}

is_gone() { ! is_alive "$1"; }
# Neither dead nor a zombie.
is_alive() { [[ $(ps -o stat= -p "$1" 2>/dev/null) == [^Z]* ]]; }
has_line() { grep -q -- "$2" "$1" 2>/dev/null; }
redis() { redis-cli -s "$HOLDFAST_HOME/redis.sock" "$@"; }
lock_is_free() { [ "$(redis exists "hf:{$1}")" = 0 ]; }
lock_is_held() { [ "$(redis exists "hf:{$1}")" = 1 ]; }
someone_waits_for() { [ "$(redis zcard "hf:{$1}:queue")" -ge "${2:-1}" ]; }
server_pid() { cat "$HOLDFAST_HOME/redis.pid"; }
now_ms() { date +%s%3N; }

# A job that says that it runs, then waits until it is told to end.
cat_until_told='touch "$BOX/$1.runs"; while [ ! -e "$BOX/$1.end" ]; do sleep 0.05; done'
hold() {
    local name=$1
    shift
    start run "$@" "$name" -- sh -c "$cat_until_told" hold "$name"
    wait_until test -e "$BOX/$name.runs"
}
let_go() { touch "$BOX/$1.end"; }

# For so many processes at once that some have to wait for their first answer.
patient_server() {
    start_local_server
    export HOLDFAST_URL="unix://$HOLDFAST_HOME/redis.sock?timeout=60s"
}

# The last sign of life in FILE, of those that follow upon each other without a gap: last_sign FILE SINCE. One more after
# a gap is that of a machine which stalled for longer than there was time to kill whoever wrote it.
last_sign() { awk -v since="$2" 'p && $1 >= since && $1 - p > 300 { exit } { p = $1 } END { print p }' "$1"; }

# The server that the tests of ls, show and the like fill by hand.
start_local_server() { holdfast server start >/dev/null; }
server_us() { redis time | { read -r seconds; read -r us; echo $((seconds * 1000000 + us)); }; }
# A hold id of the n-th client, and the card of that client.
hold_id() { printf 'hf_%016d.1.%022d' "$1" "$1"; }
introduce() { redis hset "hf:client:$(printf 'hf_%016d' "$1")" host "host-$1" pid "$1" program "prog-$1" user "user-$1" >/dev/null; }
# held_by CLIENT NAME: as the mutex scripts would have it, granted two seconds ago.
held_by() {
    redis set "hf:{$2}" "$(hold_id "$1")" px "${3:-60000}" >/dev/null
    redis set "hf:{$2}:fence" "$(($(server_us) - 2000000))" px 3600000 >/dev/null
}
# The same by an id that can be asked back.
kept_by() {
    local id
    held_by "$@"
    id=$(hold_id "$1")
    redis set "hf:{$2}" "${id/./.0}" px "${3:-60000}" >/dev/null
}
# waited_for_by CLIENT NAME SECONDS [WORD]: waits in the queue since then; WORD is what it wants, if the form has it.
waited_for_by() {
    local id now
    id=$(hold_id "$1")
    now=$(server_us)
    redis zadd "hf:{$2}:queue" "$((now - $3 * 1000000))" "$id" >/dev/null
    redis hset "hf:{$2}:waiters" "$id" "30000 10000 $now 0 ${4:-w} hf:wake:${id%%.*}" >/dev/null
}
# read_by NAME CLIENT...: a read-write lock with these readers, each entered once, granted a second apart.
read_by() {
    local name=$1 now client
    shift
    now=$(server_us)
    redis hset "hf:{$name}" mode read rcount $# >/dev/null
    redis pexpire "hf:{$name}" 60000 >/dev/null
    for client in "$@"; do
        redis hset "hf:{$name}" "r:$(hold_id "$client")" 1 >/dev/null
        redis zadd "hf:{$name}:leases" "$((now / 1000 + 40000))" "$(hold_id "$client")" >/dev/null
        redis hset "hf:{$name}:grants" "$(hold_id "$client")" "r $((now - 5000000 + client * 1000000))" >/dev/null
    done
    redis set "hf:{$name}:fence" "$now" px 3600000 >/dev/null
}
# What of JSON: a Python expression on the document `d`.
of_json() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(('"$1"'))'; }

# The rights of a user in docs/deployment.md, and what `holdfast COMMAND` needs beside those of locks.
least_rights=$BATS_TEST_DIRNAME/../../docs/deployment.md
documented_user() { sed -n "s/^    user $1 on >[^ ]* //p" "$least_rights"; }
documented_addition() { sed -n "s/.*\`\(holdfast \)\?$1\`[^\`]*\`\(+[^\`]*\)\`.*/\2/p" "$least_rights"; }
# What was refused, by the answer to ACL LOG: one command, key or channel a line.
refused_of_log() { sed -n '/^object$/{n;p}'; }
# The client's own card (hf:client:...) aside.
without_card() { grep -vxE 'hset|pexpire|del'; }

# A server that is not the local one, with these lines in its configuration; $HOLDFAST_URL names it.
start_named_server() {
    mkdir -p -m 700 "$BOX/named"
    printf '%s\n' "port 0" "unixsocket $BOX/named/redis.sock" "pidfile $BOX/named.pid" "dir $BOX/named" "$1" >"$BOX/named/redis.conf"
    redis-server "$BOX/named/redis.conf" >"$BOX/named/log" 2>&1 3>&- &
    started+=($!)
    wait_until test -S "$BOX/named/redis.sock"
    export HOLDFAST_URL=unix://$BOX/named/redis.sock
}
named_redis() { redis-cli -s "$BOX/named/redis.sock" "$@"; }

# run_redis NAME LINE...: a redis-server with these lines in its configuration; a sentinel if the first of them is its.
# Its port is in $free_port: one that nobody else has, and not of those that the system gives to clients. Whether it is ours
# that answers there is seen by its pid. BUS in a line is another such port, which is in $free_bus. What is in
# $preloaded, if anything, is a library that the server is run with.
run_redis() {
    local name=$1 tries pid as=()
    shift
    [[ $1 == sentinel* ]] && as=(--sentinel)
    mkdir -p -m 700 "$BOX/$name"
    for ((tries = 0; tries < 20; ++tries)); do
        free_port=$((30000 + RANDOM % 2700)) free_bus=$((30000 + RANDOM % 2700))
        printf '%s\n' "bind 127.0.0.1" "port $free_port" "pidfile $BOX/$name.pid" "dir $BOX/$name" "${@/BUS/$free_bus}" >"$BOX/$name/redis.conf"
        LD_PRELOAD=${preloaded-} redis-server "$BOX/$name/redis.conf" "${as[@]}" >"$BOX/$name/log" 2>&1 3>&- &
        pid=$!
        started+=("$pid")
        wait_until answers_or_is_gone "$pid"
        if answers "$pid"; then return 0; fi
    done
    cat "$BOX/$name/log" >&2
    return 1
}
answers() { [ "$(redis-cli -p "$free_port" info server 2>/dev/null | tr -d '\r' | sed -n 's/^process_id://p')" = "$1" ]; }
answers_or_is_gone() { answers "$1" || is_gone "$1"; }

# A library in $preloaded that puts the clock of a server forward by so many seconds. Not libfaketime: it asks for memory
# when it is asked for the time, and the allocator of redis-server asks for the time in order to start.
prepare_fast_clock() {
    command -v cc >/dev/null || skip "no C compiler is installed"
    preloaded=$BOX/fast_clock.so
    cc -shared -fPIC -o "$preloaded" -x c - <<END
#include <sys/time.h>
#include <time.h>
int gettimeofday(struct timeval* told, void* zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    told->tv_sec = now.tv_sec + $1;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}
END
}

# A primary and its replica, on ${port[1]} and ${port[2]}, and a sentinel on $sentinel, which decides alone here.
run_sentinel() {
    run_redis p1 'save ""' 'appendonly no'
    port[1]=$free_port
    run_redis p2 'save ""' 'repl-diskless-sync-delay 0' "replicaof 127.0.0.1 ${port[1]}"
    port[2]=$free_port
    run_redis watcher "sentinel monitor mine 127.0.0.1 ${port[1]} 1"
    sentinel=$free_port
    sentinel_url=redis+sentinel://127.0.0.1:$sentinel/mine
}

# run_cluster COUNT: a Cluster of so many primaries, whose ports are in ${members[1]} and so on. With a further word the
# clock of the last is so many seconds ahead.
run_cluster() {
    local i bus=() preloaded=
    members=()
    for ((i = 1; i <= $1; ++i)); do
        if [ $# -gt 1 ] && [ "$i" = "$1" ]; then prepare_fast_clock "$2"; fi
        run_redis "m$i" 'cluster-enabled yes' 'cluster-port BUS' 'cluster-node-timeout 5000' 'save ""'
        members[i]=$free_port bus[i]=$free_bus
    done
    for ((i = 1; i <= $1; ++i)); do
        redis-cli -p "${members[i]}" cluster addslotsrange $((16384 * (i - 1) / $1)) $((16384 * i / $1 - 1)) >/dev/null
        redis-cli -p "${members[i]}" cluster set-config-epoch $i >/dev/null
        redis-cli -p "${members[i]}" cluster meet 127.0.0.1 "${members[1]}" "${bus[1]}" >/dev/null
    done
    for ((i = 1; i <= $1; ++i)); do wait_until sees_members "${members[i]}" "$1"; done
}
# sees_members PORT COUNT
sees_members() {
    local told
    told=$(redis-cli -p "$1" cluster info)
    [[ $told == *cluster_state:ok* && $told == *cluster_known_nodes:$2* && $(redis-cli -p "$1" cluster nodes) != *fail* ]]
}

# Three independent servers, in $servers; ${server[1]} is the pid of the first. Arguments are lines for all configurations.
start_servers() {
    local i
    servers=
    for i in 1 2 3; do
        mkdir -p -m 700 "$BOX/s$i"
        printf '%s\n' "port 0" "unixsocket $BOX/s$i/redis.sock" "pidfile $BOX/s$i.pid" "dir $BOX/s$i" 'save ""' "$@" \
            >"$BOX/s$i/redis.conf"
        redis-server "$BOX/s$i/redis.conf" >"$BOX/s$i/log" 2>&1 3>&- &
        started+=($!)
        server[i]=$!
        servers+=${servers:+ }$(url "$i")
    done
    for i in 1 2 3; do wait_until test -S "$BOX/s$i/redis.sock"; done
}
url() { echo "unix://$BOX/s$1/redis.sock?timeout=5s"; }
# on SERVER COMMAND...
on() { redis-cli -s "$BOX/s$1/redis.sock" "${@:2}"; }
# A server tells its uptime in whole seconds, and up to one too many.
is_older_than() { [ "$(on "$1" info server | tr -d '\r' | sed -n 's/^uptime_in_seconds://p')" -gt "$2" ]; }

# A server that was started a short while ago grants no locks for the longest lease, so that is short here.
setup_quorum() {
    start_servers "$@"
    export HOLDFAST_URL=$servers HOLDFAST_MAX_LEASE=4s
    local i
    for i in 1 2 3; do wait_until is_older_than "$i" 5; done
}
crash() { kill -KILL "${server[$1]}" && wait_until is_gone "${server[$1]}"; }
is_free_on() { [ "$(on "$1" exists "hf:{$2}")" = 0 ]; }
is_held_on() { [ "$(on "$1" exists "hf:{$2}")" = 1 ]; }
is_free_everywhere() { is_free_on 1 "$1" && is_free_on 2 "$1" && is_free_on 3 "$1"; }
is_held_everywhere() { is_held_on 1 "$1" && is_held_on 2 "$1" && is_held_on 3 "$1"; }
someone_waits_everywhere() {
    local i
    for i in 1 2 3; do [ "$(on $i zcard "hf:{$1}:queue")" = 1 ] || return 1; done
}

# A tmux with a socket of its own is the terminal.
terminal() { tmux -S "$BOX/tmux" "$@"; }
screen() { terminal capture-pane -p -t t; }
shows() { screen | grep -q -- "$1"; }
type_line() { terminal send-keys -t t "$1" Enter; }

open_terminal() {
    printf '%s\n' "HOLDFAST_BIN='$HOLDFAST_BIN'" "PS1='prompt> '" >"$BOX/bashrc"
    terminal -f /dev/null new-session -d -s t -x 120 -y 40 \
        "env HOLDFAST_HOME='$HOLDFAST_HOME' HOLDFAST_URL='$HOLDFAST_URL' HOLDFAST_CONFIG=/dev/null BOX='$BOX' bash --rcfile '$BOX/bashrc' --noprofile -i" 3>&-
    terminal display-message -p '#{pid}' >"$BOX/tmux.pid"
    wait_until shows 'prompt>'
}
