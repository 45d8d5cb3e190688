# A lock that is lost: the command is gone before somebody else can acquire the lock.
load common

# Deaf to TERM; writes down that it is alive, again and again.
deaf='trap "echo TERM >>\"$BOX/heard\"" TERM; echo $$ >"$BOX/job"
      while :; do date +%s%3N >>"$BOX/alive"; sleep 0.02; done'

@test "Lost.CommandIsKilledBeforeTheLeaseCanEnd" {
    start run --lease 5s a -- bash -c "$deaf"
    wait_until test -s "$BOX/alive"
    kill -STOP "$(server_pid)"
    # No renewal was answered after this instant, so the lease ends at most five seconds after it.
    local stopped_ms
    stopped_ms=$(now_ms)
    finish "$last"
    local last_sign
    last_sign=$(last_sign "$BOX/alive" "$stopped_ms")
    echo "$status, alive until $((last_sign - stopped_ms)) ms after the server stopped"
    [ "$status" -eq 75 ]
    [ $((last_sign - stopped_ms)) -lt 5000 ]
    has_line "$BOX/heard" TERM
    has_line "$BOX/out" "lost the lock 'a': no server has confirmed it within its lease of 5s; ending the command"
    is_gone "$(cat "$BOX/job")"
    kill -CONT "$(server_pid)"
}

@test "Lost.TermComesFirstAndIsGivenTime" {
    # An operator ends the hold; a whole lease is left for the command to end.
    start run --lease 6s --grace 60s a -- bash -c \
        'trap "sleep 0.3; echo tidy >\"$BOX/tidy\"; exit 0" TERM; touch "$BOX/a.runs"; while :; do sleep 0.05; done'
    wait_until test -e "$BOX/a.runs"
    redis del 'hf:{a}'
    finish "$last"
    [ "$status" -eq 75 ]
    has_line "$BOX/tidy" tidy
    has_line "$BOX/out" "lost the lock 'a': the server no longer has this hold"
}

@test "Lost.WhatTheCommandStartedIsKilledToo" {
    start run --lease 3s --grace 100ms a -- bash -c \
        '(trap "" TERM; echo $BASHPID >"$BOX/child"; while :; do sleep 0.05; done) & trap "exit 0" TERM; while :; do sleep 0.05; done'
    wait_until test -s "$BOX/child"
    redis set 'hf:{a}' somebody
    finish "$last"
    [ "$status" -eq 75 ]
    wait_until is_gone "$(cat "$BOX/child")"
    [ "$(redis get 'hf:{a}')" = somebody ]
    has_line "$BOX/out" "lost the lock 'a': the server lost this hold and granted the lock to another holder"
}

@test "Lost.WithWarnTheCommandGoesOnAndTheStatusTells" {
    hold a --lease 2s --on-lost warn
    redis del 'hf:{a}'
    wait_until has_line "$BOX/out" "lost the lock 'a'"
    is_alive "$last"
    let_go a
    finish "$last"
    [ "$status" -eq 75 ]
}

@test "Lost.WithWarnTheCommandsOwnTroubleIsPassedOn" {
    start run --lease 2s --on-lost=warn a -- sh -c 'touch "$BOX/runs"; while [ ! -e "$BOX/end" ]; do sleep 0.05; done; exit 3'
    wait_until test -e "$BOX/runs"
    redis del 'hf:{a}'
    wait_until has_line "$BOX/out" "lost the lock 'a'"
    touch "$BOX/end"
    finish "$last"
    [ "$status" -eq 3 ]
}

@test "Lost.WhileHoldfastItselfIsStoppedTheGuardKills" {
    start run --lease 5s a -- bash -c "$deaf"
    wait_until test -s "$BOX/alive"
    kill -STOP "$last"
    local stopped_ms
    stopped_ms=$(now_ms)
    wait_until is_gone "$(cat "$BOX/job")"
    local last_sign
    last_sign=$(last_sign "$BOX/alive" "$stopped_ms")
    echo "alive until $((last_sign - stopped_ms)) ms after holdfast stopped"
    [ $((last_sign - stopped_ms)) -lt 5000 ]
    kill -CONT "$last"
    finish "$last"
    [ "$status" -eq 75 ]
}

@test "Lost.OnlyAtTheEndIsAWarning" {
    start run --lease 60s a -- sh -c "$cat_until_told" hold a
    wait_until test -e "$BOX/a.runs"
    redis del 'hf:{a}'
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
    has_line "$BOX/out" "lock 'a' was not released"
}

@test "Lost.NotByAServerThatIsAwayForLessThanTheLease" {
    hold a --lease 20s
    kill -STOP "$(server_pid)"
    sleep 1
    kill -CONT "$(server_pid)"
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
    lock_is_free a
}

@test "Lost.ToAnOperatorIsSaid" {
    hold a
    holdfast release --force --yes a
    finish "$last"
    [ "$status" -eq 75 ]
    has_line "$BOX/out" "lost the lock 'a': somebody asked for it by holdfast release --force"
}

# R57
@test "Delay.KeepsTheLockFreeOfNewHoldersAfterACrashAndNotAfterARelease" {
    run holdfast run --delay 30s stock -- true
    [ "$status" -eq 0 ]
    lock_is_free stock
    start run --lease 10s --delay 40s stock -- sleep 60
    holder=$last
    wait_until lock_is_held stock
    kill -KILL "$holder"
    wait_until is_gone "$holder"
    [ "$(redis pttl 'hf:{stock}')" -gt 30000 ]
    run holdfast run --no-wait --lease 10s --delay 40s stock -- true
    [ "$status" -eq 1 ]
}

@test "Delay.ThatCannotBeIsRefusedWithTheReason" {
    run holdfast run --lease 30s --delay 40s stock -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"--max-lease"* ]]
    run holdfast run --shared --delay 1s stock -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"only a plain lock has a delay"* ]]
}
