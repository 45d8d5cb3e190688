# holdfast elect and holdfast wait.
load common

@test "Elect.RunsTheCommandAndTellsTheLeadersValue" { # R56
    start elect leader --value node-1:8080 -- sh -c "$cat_until_told" hold leader
    wait_until test -e "$BOX/leader.runs"
    run --separate-stderr holdfast show leader --json
    [ "$(of_json 'd["lock"]["holders"][0]["note"]' <<<"$output")" = node-1:8080 ]
    run holdfast elect leader --value node-2:8080 --no-wait -- true
    [ "$status" -eq 1 ]
    [[ "$output" == *node-1:8080* ]]
    let_go leader
    finish "$last"
    [ "$status" -eq 0 ]
    run holdfast elect leader -- true
    [ "$status" -eq 125 ]
}

# A candidate whose command says that it leads, then waits until it is told to end: candidate VALUE [OPTION...].
candidate() {
    local value=$1
    shift
    start elect leader --value "$value" "$@" -- sh -c "$cat_until_told" hold "$value"
}
leads() { [ "$(holdfast show leader --json | of_json 'd["lock"]["holders"][0]["note"]' 2>/dev/null)" = "$1" ]; }
token_of_leader() { holdfast show leader --json | of_json 'd["lock"]["holders"][0]["token"]'; }

@test "Elect.ASecondLeadsAsSoonAsTheFirstEnds" {
    candidate one --lease 60s
    local first=$last
    wait_until test -e "$BOX/one.runs"
    local token
    token=$(token_of_leader)
    candidate two --lease 60s
    local second=$last
    wait_until someone_waits_for leader
    [ ! -e "$BOX/two.runs" ]
    leads one
    let_go one
    finish "$first"
    [ "$status" -eq 0 ]
    wait_until test -e "$BOX/two.runs" # a lease is longer than this waits
    leads two
    [ "$(token_of_leader)" -gt "$token" ]
    let_go two
    finish "$second"
    [ "$status" -eq 0 ]
}

@test "Elect.ATermEndsTheCommandAndResigns" {
    candidate one --lease 60s
    local first=$last
    wait_until test -e "$BOX/one.runs"
    candidate two --lease 60s
    local second=$last
    wait_until someone_waits_for leader
    kill -TERM "$first"
    finish "$first"
    [ "$status" -eq 143 ]
    wait_until test -e "$BOX/two.runs"
    leads two
    # One that waits leaves the queue.
    candidate three
    wait_until someone_waits_for leader
    kill -TERM "$last"
    finish "$last"
    [ "$status" -eq 143 ]
    run ! someone_waits_for leader
    let_go two
    finish "$second"
}

@test "Elect.TheNextLeadsWhenTheLeaderIsKilled" {
    start elect leader --value one --lease 1s -- bash -c 'echo $$ >"$BOX/job"; while :; do sleep 0.05; done'
    local first=$last
    wait_until test -s "$BOX/job"
    candidate two --lease 1s
    local second=$last
    wait_until someone_waits_for leader
    kill -KILL "$first"
    wait_until test -e "$BOX/two.runs"
    is_gone "$(cat "$BOX/job")" # before anybody else leads
    leads two
    let_go two
    finish "$second"
    [ "$status" -eq 0 ]
}

@test "Elect.ALeaderThatLosesEndsItsCommandFirst" {
    candidate one --lease 6s --grace 60s
    local first=$last
    wait_until test -e "$BOX/one.runs"
    redis del 'hf:{leader}'
    finish "$first"
    [ "$status" -eq 75 ]
    has_line "$BOX/out" "lost the lock 'leader'"
    start elect leader --value two --on-lost warn -- sh -c "$cat_until_told" hold two
    wait_until test -e "$BOX/two.runs"
    redis del 'hf:{leader}'
    lost_again() { [ "$(grep -c "lost the lock 'leader'" "$BOX/out")" -ge 2 ]; }
    wait_until lost_again
    is_alive "$last"
    let_go two
    finish "$last"
    [ "$status" -eq 75 ]
}

@test "Elect.ObserversSeeLeadersInTheOrderOfTheirTokens" {
    start_local_server
    env --default-signal=INT,QUIT "$HOLDFAST_BIN" watch leader --json --interval 60s >"$BOX/seen" 2>/dev/null 3>&- &
    local observer=$!
    started+=("$observer")
    is_watched() { [ "$(redis hexists 'hf:{leader}:waiters' watch)" = 1 ]; }
    wait_until is_watched
    local n
    for n in one two three; do
        candidate "$n"
        wait_until test -e "$BOX/$n.runs"
        wait_until leads "$n"
        wait_until has_tokens
        let_go "$n"
        finish "$last"
        more=$((more + 1))
    done
    kill -INT "$observer"
    finish "$observer"
    python3 - "$BOX/seen" <<'end'
import json, sys
tokens = [e["token"] for e in map(json.loads, open(sys.argv[1])) if e["event"] in ("acquired", "handed over")]
assert len(tokens) == 3 and tokens == sorted(set(tokens)), tokens
end
}
more=1
has_tokens() { [ "$(grep -c '"event": *"acquired"' "$BOX/seen")" -eq "$more" ]; }

@test "Elect.TakesWhatRunTakesOfTheServersAndTheLease" {
    start_local_server
    run holdfast elect leader --value one --mistrust-restarts --clock-skew 1ms --fence-retention 2h --delay 1s -- \
        sh -c '"$BIN" show leader --json'
    [ "$status" -eq 0 ]
    [ "$(redis pttl 'hf:{leader}:fence')" -gt 3700000 ]
    run holdfast elect leader --value one --replicas 1 -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *replica* ]]
    run holdfast elect leader --value one --clock-skew nonsense -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *--clock-skew* ]]
    run holdfast elect leader --value one -c 'echo led; exit 3'
    [ "$status" -eq 3 ]
    [ "$output" = led ]
    run holdfast elect leader --value one --shared -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"elect has no option --shared"* ]]
}

@test "Wait.EndsWhenTheLockIsFree" {
    start_local_server
    run holdfast wait nothing
    [ "$status" -eq 0 ]
    hold a
    holder=$last
    run holdfast wait a --timeout 200ms
    [ "$status" -eq 1 ]
    [[ "$output" == *"not free within 200ms"* ]]
    run holdfast wait a --timeout 200ms -q -E 7
    [ "$status" -eq 7 ]
    [ -z "$output" ]
    start wait a
    waiter=$last
    let_go a
    finish "$holder"
    finish "$waiter"
    [ "$status" -eq 0 ]
}

@test "Wait.IsToldWhenTheLockIsFree" {
    start_local_server
    hold a
    local holder=$last
    start wait a --interval 60s
    local waiter=$last
    is_watched() { [ "$(redis hexists 'hf:{a}:waiters' watch)" = 1 ]; }
    wait_until is_watched
    let_go a
    finish "$holder"
    wait_until is_gone "$waiter" # no look would come before
    finish "$waiter"
    [ "$status" -eq 0 ]
}

@test "Wait.LooksWhereItIsNotTold" {
    start_local_server
    start run --slots 1 a -- sh -c "$cat_until_told" hold a
    local holder=$last
    wait_until test -e "$BOX/a.runs"
    start wait a
    local waiter=$last
    start wait raw --keys raw
    local of_raw=$last
    let_go a
    finish "$holder"
    finish "$waiter"
    [ "$status" -eq 0 ]
    finish "$of_raw"
    [ "$status" -eq 0 ]
}
