# holdfast release --force: ends the grant it showed, hands over to the next waiter, tells the holder.
load common

# Hears what is published to a client, as a pattern listener: that is not counted as the client's listening.
listen() {
    redis psubscribe 'hf:wake:*' >"$BOX/heard" 2>&1 3>&- &
    started+=($!)
    wait_until has_line "$BOX/heard" psubscribe
}

@test "Release.WithoutForceDoesNothing" {
    start_local_server
    held_by 1 a
    run holdfast release a --yes
    [ "$status" -eq 125 ]
    [[ "$output" == *--force* ]]
    run ! lock_is_free a
}

@test "Release.WhereNobodyCanBeAskedWantsYes" {
    start_local_server
    held_by 1 a
    run holdfast release a --force </dev/null
    [ "$status" -eq 1 ]
    [[ "$output" == *"not released"*--yes* ]]
    run ! lock_is_free a
}

@test "Release.EndsTheGrantAndTellsTheHolder" {
    start_local_server
    introduce 1
    held_by 1 a
    listen
    local token
    token=$(redis get 'hf:{a}:fence')
    run --separate-stderr holdfast release a --force --yes --grace 0s
    [ "$status" -eq 0 ]
    [ "$output" = "user-1@host-1 prog-1[1]: released" ]
    lock_is_free a
    wait_until has_line "$BOX/heard" "^revoked $(hold_id 1) $token\$"
    has_line "$BOX/heard" '^hf:wake:hf_0000000000000001$'
}

@test "Release.OfALiveHolderServesTheNextAndEndsTheFirst" {
    hold a --lease 6s
    local holder=$last
    start run -q a -- touch "$BOX/next.ran"
    local next=$last
    wait_until someone_waits_for a
    run --separate-stderr holdfast release a --force --yes --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'd["holders"][0]["client"]["pid"], d["holders"][0]["released"]' <<<"$output")" = "($holder, True)" ]
    finish "$next"
    [ "$status" -eq 0 ]
    [ -e "$BOX/next.ran" ]
    # The holder learns it at the latest at its next renewal, and ends its command.
    finish "$holder"
    [ "$status" -eq 75 ]
}

# A holder with a lease of a minute renews every twenty seconds. One that has ended well before that was told.
ends_at_once_when_released() {
    start run --lease 60s "$@" a -- sh -c 'trap "echo TERM >\"\$BOX/heard.term\"; exit 0" TERM; touch "$BOX/a.runs"; while :; do sleep 0.05; done'
    wait_until test -e "$BOX/a.runs"
    local before
    before=$(now_ms)
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    finish "$last"
    echo "ended after $(($(now_ms) - before)) ms with $status"
    [ "$status" -eq 75 ]
    [ $(($(now_ms) - before)) -lt 15000 ]
    has_line "$BOX/heard.term" TERM
    has_line "$BOX/out" "lost the lock 'a'"
}

@test "Release.TellsAHolderThatNeverWaitedAtOnce" { ends_at_once_when_released; }
@test "Release.TellsAHolderThatWouldHaveWaitedForSomeTimeAtOnce" { ends_at_once_when_released --wait 10s; }
@test "Release.TellsAReaderAtOnce" { ends_at_once_when_released --shared; }
@test "Release.TellsAWriterAtOnce" { ends_at_once_when_released --exclusive; }

# The command of the holder is deaf to TERM. The next holder looks, as the first thing it does, whether that command lives.
next_starts_when_the_command_is_dead() {
    start run --lease 30s --grace 500ms "$@" a -- bash -c 'trap "" TERM; echo $$ >"$BOX/job"; while :; do sleep 0.02; done'
    local holder=$last
    wait_until test -s "$BOX/job"
    start run -q "${next[@]}" a -- bash -c 'kill -0 "$(cat "$BOX/job")" 2>/dev/null && echo alive >"$BOX/found" || echo dead >"$BOX/found"'
    local follower=$last
    wait_until someone_waits_for a
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    local told=$output
    finish "$follower"
    [ "$(cat "$BOX/found")" = dead ]
    [[ "$told" == *"stopped, and released it" ]]
    finish "$holder"
    [ "$status" -eq 75 ]
}

@test "Release.TheNextStartsWhenTheCommandIsDead" { next_starts_when_the_command_is_dead; }
@test "Release.TheNextStartsWhenTheCommandOfOneThatDidNotWantToWaitIsDead" { next_starts_when_the_command_is_dead --no-wait; }
@test "Release.TheNextStartsWhenTheCommandOfAReaderIsDead" {
    next=(--exclusive)
    next_starts_when_the_command_is_dead --shared
}

# Its fencing mark ends while the command is waited for: that is not the end of the grant.
@test "Release.TheNextStartsWhenTheCommandIsDeadThoughTheMarkEndsBefore" {
    start run --lease 30s --grace 1s a -- bash -c 'trap "" TERM; echo $$ >"$BOX/job"; while :; do sleep 0.02; done'
    local holder=$last
    wait_until test -s "$BOX/job"
    start run -q a -- bash -c 'kill -0 "$(cat "$BOX/job")" 2>/dev/null && echo alive >"$BOX/found" || echo dead >"$BOX/found"'
    local follower=$last
    wait_until someone_waits_for a
    redis pexpire 'hf:{a}:fence' 500 >/dev/null
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    [[ "$output" == *"stopped, and released it" ]]
    finish "$follower"
    [ "$(cat "$BOX/found")" = dead ]
    finish "$holder"
    [ "$status" -eq 75 ]
}

# Of a hold that is older than the retention nothing but the holder knows the token.
@test "Release.OfAHoldThatOutlivedItsMarkIsHeardByTheHolder" {
    hold a --lease 60s
    redis del 'hf:{a}:fence' >/dev/null
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    [[ "$output" == *"stopped, and released it" ]]
    finish "$last"
    [ "$status" -eq 75 ]
}

@test "Release.OfAHolderThatGoesOnIsForcedAfterTheGrace" {
    hold a --lease 30s --on-lost warn
    run --separate-stderr holdfast release a --force --yes --grace 200ms
    [ "$status" -eq 0 ]
    [[ "$output" == *": released" ]]
    lock_is_free a
    wait_until has_line "$BOX/out" "lost the lock 'a'"
    let_go a
    finish "$last"
}

@test "Release.WithoutGraceForcesAtOnce" {
    hold a --lease 30s
    run --separate-stderr holdfast release a --force --yes --grace 0s
    [ "$status" -eq 0 ]
    [[ "$output" == *": released" ]]
    finish "$last"
    [ "$status" -eq 75 ]
}

@test "Release.WaitsForNobodyWhoDoesNotListen" {
    start_local_server
    held_by 1 a
    run --separate-stderr timeout 60 "$HOLDFAST_BIN" release a --force --yes --grace 10m
    [ "$status" -eq 0 ]
    lock_is_free a
}

@test "Release.OfAFreeLockIsExitOne" {
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"nobody holds 'a'"* ]]
}

@test "Release.OfAForeignHolderOfARawLockFreesIt" {
    start_local_server
    redis set cron worker-3 px 60000 >/dev/null
    listen
    run --separate-stderr holdfast release cron --keys raw --force --yes
    [ "$status" -eq 0 ]
    [ "$(redis exists cron)" = 0 ]
    redis publish hf:wake:end end >/dev/null
    wait_until has_line "$BOX/heard" '^end$'
    run ! has_line "$BOX/heard" revoked
}

@test "Release.OfReadersEndsAllOrTheOneThatIsNamed" {
    start_local_server
    read_by a 1 2 3
    listen
    run --separate-stderr holdfast release a --force --yes --grace 0s --holder "$(hold_id 2)"
    [ "$status" -eq 0 ]
    [ "$(redis hexists 'hf:{a}' "r:$(hold_id 2)")" = 0 ]
    [ "$(redis hget 'hf:{a}' rcount)" = 2 ]
    wait_until has_line "$BOX/heard" "^revoked $(hold_id 2) "
    run ! has_line "$BOX/heard" "^revoked $(hold_id 1) "
    run --separate-stderr holdfast release a --force --yes --grace 0s
    [ "$status" -eq 0 ]
    lock_is_free a
    wait_until has_line "$BOX/heard" "^revoked $(hold_id 3) "
}

@test "Release.OfAForeignReaderIsRefused" {
    start_local_server
    redis hset 'hf:{a}' mode read rcount 1 r:goroutine-7 1 >/dev/null
    redis pexpire 'hf:{a}' 60000 >/dev/null
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 1 ]
    [[ "$output" == *"another program"* ]]
    run ! lock_is_free a
}

@test "Release.IsDoneEvenIfTheHolderCannotBeTold" {
    start_named_server 'save ""'
    redis() { named_redis "$@"; }
    held_by 1 a
    named_redis acl setuser op on '>pw' +@all -publish '~*' '&*' >/dev/null
    HOLDFAST_URL=unix://op:pw@$BOX/named/redis.sock run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"could not be told"* ]]
    lock_is_free a
}

@test "Release.AsksFirstOnATerminal" {
    start_local_server
    introduce 1
    held_by 1 a
    open_terminal
    type_line '"$HOLDFAST_BIN" release a --force; echo "status=$?"'
    wait_until shows 'End the hold of this holder? .y/N.'
    shows 'user-1@host-1'
    type_line n
    wait_until shows '^status=1'
    run ! lock_is_free a
    terminal send-keys -t t C-l
    type_line '"$HOLDFAST_BIN" release a --force; echo "status=$?"'
    wait_until shows 'End the hold of this holder? .y/N. *$'
    type_line y
    wait_until shows '^status=0'
    lock_is_free a
}

@test "Release.OfAGrantThatEndedMeanwhileLeavesTheNextAlone" {
    start_local_server
    held_by 1 a
    open_terminal
    type_line '"$HOLDFAST_BIN" release a --force; echo "status=$?"'
    wait_until shows 'End the hold of this holder? .y/N.'
    # The same id has a newer grant by the time the answer is yes.
    redis set 'hf:{a}:fence' "$(server_us)" px 3600000 >/dev/null
    type_line y
    wait_until shows 'already over'
    wait_until shows '^status=1'
    run ! lock_is_free a
}
