# Signals: to the command and all it started, while waiting, and those that nobody can catch.
load common

# Writes to $BOX/heard which signals it and a process that it started hear; ends at the first.
listener='
    hear() { echo "$1 $2" >>"$BOX/heard"; }
    for s in INT TERM HUP QUIT USR1 USR2; do trap "hear parent $s; end=1" $s; done
    (
        for s in INT TERM HUP QUIT USR1 USR2; do trap "hear child $s; end=1" $s; done
        echo ready >>"$BOX/ready"
        while [ -z "$end" ]; do sleep 0.05; done
    ) &
    echo ready >>"$BOX/ready"
    while [ -z "$end" ]; do sleep 0.05; done
    wait
    exit 7'
both_are_ready() { [ "$(wc -l <"$BOX/ready" 2>/dev/null || echo 0)" -eq 2 ]; }

@test "Signals.GoToTheWholeGroupOfTheCommand" {
    for signal in INT TERM HUP QUIT USR1 USR2; do
        rm -f "$BOX/heard" "$BOX/ready"
        start run a -- bash -c "$listener"
        wait_until both_are_ready
        kill -"$signal" "$last"
        finish "$last"
        echo "$signal: $status: $(cat "$BOX/heard")"
        [ "$status" -eq 7 ]
        has_line "$BOX/heard" "parent $signal"
        has_line "$BOX/heard" "child $signal"
    done
}

@test "Signals.ThatEndTheCommandAreTheExitStatusAndGiveTheLockBack" {
    for signal in INT:130 TERM:143 HUP:129; do
        rm -f "$BOX/a.runs"
        hold a
        kill -"${signal%:*}" "$last"
        finish "$last"
        [ "$status" -eq "${signal#*:}" ]
        lock_is_free a
    done
}

@test "Signals.WhileWaitingEndTheWait" {
    hold a
    local holder=$last
    for signal in INT:130 TERM:143 HUP:129 QUIT:131; do
        start run a -- touch "$BOX/ran"
        wait_until someone_waits_for a
        kill -"${signal%:*}" "$last"
        finish "$last"
        [ "$status" -eq "${signal#*:}" ]
        wait_until eval '! someone_waits_for a'
    done
    [ ! -e "$BOX/ran" ]
    let_go a
    finish "$holder"
    [ "$status" -eq 0 ]
}

@test "Signals.ThatWereIgnoredAboveStayIgnored" {
    nohup "$HOLDFAST_BIN" run a -- sh -c "$cat_until_told" hold a </dev/null >>"$BOX/out" 2>&1 3>&- &
    last=$!
    started+=("$last")
    wait_until test -e "$BOX/a.runs"
    kill -HUP "$last"
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
}

@test "Kill9.OfHoldfastTakesTheCommandAndAllItStartedWithIt" {
    start run a -- bash -c 'trap "" TERM INT HUP; sleep 1000 & echo $! >"$BOX/child"; echo $$ >"$BOX/parent"; wait'
    wait_until test -s "$BOX/parent"
    local parent child
    parent=$(cat "$BOX/parent") child=$(cat "$BOX/child")
    is_alive "$parent"
    is_alive "$child"
    kill -KILL "$last"
    wait_until is_gone "$parent"
    wait_until is_gone "$child"
}

@test "Kill9.WhileACommandRunsUnderTwoLocksEndsIt" {
    start run a -- "$HOLDFAST_BIN" run b -- bash -c 'echo $$ >"$BOX/parent"; sleep 1000; true'
    wait_until test -s "$BOX/parent"
    kill -KILL "$last"
    wait_until is_gone "$(cat "$BOX/parent")"
}

@test "Guard.EndsWithHoldfast" {
    hold a
    local guard
    guard=$(pgrep -x holdfast-guard --parent "$last")
    is_alive "$guard"
    let_go a
    finish "$last"
    is_gone "$guard"
    rm "$BOX/a.runs" "$BOX/a.end"
    hold a
    guard=$(pgrep -x holdfast-guard --parent "$last")
    kill -KILL "$last"
    wait_until is_gone "$guard"
}
