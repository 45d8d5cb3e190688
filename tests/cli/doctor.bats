# holdfast doctor: each danger is made, found, and told with its fix; the exit status is for scripts.
load common

# severity_of CHECK, of the JSON in $output
severity_of() { of_json "next(c['severity'] for c in d['servers'][0]['checks'] if c['check'] == '$1')" <<<"$output"; }
finding_of() { of_json "next(c['finding'] for c in d['servers'][0]['checks'] if c['check'] == '$1')" <<<"$output"; }
examine() { run --separate-stderr holdfast doctor --json "$@"; }
safe=$'appendonly yes\nmaxmemory-policy noeviction'

# A machine that stalls has slow round trips, of which doctor warns.
finds_nothing_wrong() {
    holdfast doctor --json >"$BOX/found" || return 1
    [ "$(of_json 'd["servers"][0]["dangers"], d["servers"][0]["warnings"]' <"$BOX/found")" = "(0, 0)" ]
}
says_that_nothing_is_wrong() { holdfast doctor | grep -q "nothing here endangers locks"; }

@test "Doctor.FindsNothingWrongWithTheLocalServer" {
    wait_until finds_nothing_wrong
    wait_until says_that_nothing_is_wrong
}

@test "Doctor.LeavesNothingBehind" {
    start_named_server "$safe"
    examine
    [ "$(named_redis dbsize)" = 0 ]
}

@test "Doctor.EvictionIsADangerAndTellsTheFix" {
    for policy in allkeys-lru volatile-ttl volatile-lru; do
        start_named_server "$safe"
        named_redis config set maxmemory-policy $policy maxmemory 100mb
        examine
        [ "$status" -eq 2 ]
        [ "$(severity_of eviction)" = danger ]
        [[ "$(finding_of eviction)" == *$policy* ]]
        run --separate-stderr holdfast doctor
        [ "$status" -eq 2 ]
        [[ "$output" == *danger*eviction*"Fix: CONFIG SET maxmemory-policy noeviction"* ]]
        # Without a limit nothing is evicted, yet.
        named_redis config set maxmemory 0
        examine
        [ "$status" -eq 1 ]
        [ "$(severity_of eviction)" = warning ]
        named_redis shutdown nosave
        rm -rf "$BOX/named"
    done
}

@test "Doctor.PersistenceIsJudged" {
    start_named_server $'save ""\nappendonly no'
    examine
    [ "$status" -eq 1 ]
    [ "$(severity_of persistence)" = warning ]
    named_redis config set save "60 1"
    examine
    [ "$(severity_of persistence)" = warning ]
    [[ "$(finding_of persistence)" == *snapshots* ]]
    named_redis config set appendonly yes
    examine
    [ "$(severity_of persistence)" = ok ]
    named_redis config set appendfsync no
    examine
    [ "$(severity_of persistence)" = warning ]
}

@test "Doctor.AReplicaIsADangerAndReplicasWantMinReplicas" {
    start_named_server $'appendonly yes\nport 0'
    mkdir "$BOX/replica"
    # Replication needs TCP: a free port, found by trying.
    local port
    for port in 47301 47302 47303 47304 47305; do
        [ "$(named_redis config set port $port)" = OK ] && break
    done
    redis-server --port 0 --unixsocket "$BOX/replica/redis.sock" --dir "$BOX/replica" --save "" --replicaof 127.0.0.1 $port >/dev/null 2>&1 3>&- &
    started+=($!)
    has_replica() { [[ "$(named_redis info replication)" == *"connected_slaves:1"*state=online* ]]; }
    wait_until has_replica
    examine
    [ "$(severity_of role)" = ok ]
    [ "$(severity_of replicas)" = warning ]
    named_redis config set min-replicas-to-write 1
    examine
    [ "$(severity_of replicas)" = ok ]
    HOLDFAST_URL=unix://$BOX/replica/redis.sock examine
    [ "$status" -eq 2 ]
    [ "$(severity_of role)" = danger ]
}

@test "Doctor.MissingRightsAreNamed" {
    start_named_server "$safe"
    named_redis acl setuser eve on '>pw-eve' '+@all' '-zadd' '-publish' '~hf:*' '&*'
    HOLDFAST_URL="unix://eve:pw-eve@$BOX/named/redis.sock" examine
    [ "$status" -eq 2 ]
    [ "$(severity_of rights)" = danger ]
    [[ "$(finding_of rights)" == *PUBLISH*ZADD* ]]
    [[ "$output" != *pw-eve* ]]
    # The keys of locks are closed to this one, and the channels to that one.
    named_redis acl setuser ken on '>pw' '+@all' '~other:*' '&*'
    HOLDFAST_URL="unix://ken:pw@$BOX/named/redis.sock" examine
    [ "$(severity_of rights)" = danger ]
    [[ "$(finding_of rights)" == *EVALSHA* ]]
    named_redis acl setuser cho on '>pw' '+@all' '~hf:*' resetchannels
    HOLDFAST_URL="unix://cho:pw@$BOX/named/redis.sock" examine
    [ "$(severity_of rights)" = danger ]
    [[ "$(finding_of rights)" == *PUBLISH* ]]
    [ "$(severity_of wake-ups)" = warning ]
    [[ "$output" == *wake=poll* ]]
    # Works, but less well.
    named_redis acl setuser pub on '>pw' '+@all' '-pubsub' '~hf:*' '&hf:wake:*'
    HOLDFAST_URL="unix://pub:pw@$BOX/named/redis.sock" examine
    [ "$status" -eq 1 ]
    [ "$(severity_of rights)" = warning ]
    [[ "$(finding_of rights)" == *"PUBSUB NUMSUB"* ]]
    named_redis acl setuser ack on '>pw' '+@all' '~hf:*' '&hf:wake:*'
    HOLDFAST_URL="unix://ack:pw@$BOX/named/redis.sock" examine
    [ "$(severity_of rights)" = warning ]
    [ "$(finding_of rights)" = "missing: PUBLISH to hf:ack:*" ]
    named_redis acl setuser all on '>pw' '+@all' '~hf:*' '&hf:wake:*' '&hf:ack:*'
    HOLDFAST_URL="unix://all:pw@$BOX/named/redis.sock" examine
    [ "$(severity_of rights)" = ok ]
}

@test "Doctor.WhatMayNotBeAskedIsAWarning" {
    start_named_server "$safe"
    named_redis acl setuser low on '>pw' '+@all' '-config' '-info' '~hf:*' '&hf:wake:*'
    HOLDFAST_URL="unix://low:pw@$BOX/named/redis.sock" examine
    [ "$status" -eq 1 ]
    [ "$(severity_of eviction)" = warning ]
    [[ "$(finding_of eviction)" == *"could not be read"* ]]
}

@test "Doctor.LowBuffersFullServersAndShortTimeoutsAreWarnings" {
    start_named_server "$safe"
    named_redis config set client-output-buffer-limit 'pubsub 65536 32768 10'
    named_redis config set timeout 3
    named_redis setrange filler 50000000 x # so that a connection more or less makes no difference
    named_redis config set maxmemory "$(($(named_redis info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p') * 100 / 95))"
    examine
    [ "$status" -eq 1 ]
    [ "$(severity_of buffers)" = warning ]
    [ "$(severity_of idle)" = warning ]
    [ "$(severity_of memory)" = warning ]
    named_redis config set maxmemory 1
    examine
    [ "$status" -eq 2 ]
    [ "$(severity_of memory)" = danger ]
    [ "$(severity_of rights)" = ok ]
    named_redis config set client-output-buffer-limit 'pubsub 32mb 8mb 60'
    named_redis config set timeout 0
    named_redis config set maxmemory 1gb
    examine
    [ "$(severity_of buffers)" = ok ]
    [ "$(severity_of idle)" = ok ]
    [ "$(severity_of memory)" = ok ]
}

@test "Doctor.AClockThatIsOffIsAWarning" {
    command -v faketime >/dev/null || skip "faketime is not installed"
    faketime -f +90s "$HOLDFAST_BIN" --version >/dev/null 2>&1 || skip "an instrumented build cannot be preloaded"
    start_named_server "$safe"
    # The other way round: to us it is all the same.
    run --separate-stderr faketime -f +90s "$HOLDFAST_BIN" doctor --json
    [ "$(severity_of clock)" = warning ]
    [[ "$(finding_of clock)" == *"1m"*"behind"* ]]
    examine
    [ "$(severity_of clock)" = ok ]
}

# 30,000 marks among 40,000 keys: a sample of ten thousand tells it within a tenth.
@test "Doctor.MarksAreEstimatedAndAreAWarningWhereTheyAreMuch" {
    start_named_server "$safe"
    examine
    [[ "$(finding_of marks)" == "about 0 fencing marks, 0.0 MB"* ]]
    named_redis eval 'for i = 1, 30000 do redis.call("SET", "hf:{job:" .. i .. "}:fence", "1700000000000000", "PX", 3600000) end
        for i = 1, 10000 do redis.call("SET", "other:" .. i, i) end' 0
    examine
    [ "$(severity_of marks)" = ok ]
    [[ "$(finding_of marks)" =~ ^about\ (2[7-9]|3[0-2])[0-9][0-9][0-9]\ fencing\ marks,\ [34]\.[0-9]\ MB\ \(estimated\ from\ 1[0-9]{4}\ of\ 4000[0-9]\ keys\)$ ]]
    named_redis config set maxmemory 12mb
    examine
    [ "$(severity_of marks)" = warning ]
    run --separate-stderr holdfast doctor
    [[ "$output" == *warning*marks*--fence-retention* ]]
}

@test "Doctor.FreshStartIsAWarning" {
    start_named_server "$safe"
    examine
    [ "$(severity_of uptime)" = warning ]
}

@test "Doctor.UnreachableServerIs125" {
    examine --url redis://127.0.0.1:1
    [ "$status" -eq 125 ]
    [ -z "$output" ]
}

@test "Doctor.PrescribesWhatRunThenDoes" {
    start_named_server $'save ""\nappendonly no'
    run --separate-stderr holdfast doctor
    [[ "$output" == *--mistrust-restarts* ]]
    # This server was started just now.
    run holdfast run --mistrust-restarts --no-wait a -- touch "$BOX/ran"
    echo "$output"
    [ "$status" -eq 125 ]
    [[ "$output" == *started*ago* ]]
    run holdfast run --replicas 1 --no-wait a -- touch "$BOX/ran"
    echo "$output"
    [ "$status" -eq 125 ]
    [[ "$output" == *replica* ]]
    [ ! -e "$BOX/ran" ]
    run holdfast run --clock-skew 1s a -- true
    [ "$status" -eq 0 ]
}

@test "Doctor.TellsWhichServerItIs" {
    start_named_server "$safe"
    examine
    [ "$(severity_of version)" = ok ]
    local version
    version=$(named_redis info server | tr -d '\r' | sed -n 's/^valkey_version:/Valkey /p;s/^redis_version:/Redis /p' | sort | tail -n 1)
    [[ "$(finding_of version)" == "$version"* ]]
    [ "$(severity_of scripts)" = ok ]
}

@test "Doctor.AServerWithoutScriptsIsADanger" {
    start_named_server "$safe"$'\nrename-command EVALSHA ""'
    examine
    [ "$status" -eq 2 ]
    [ "$(severity_of scripts)" = danger ]
    [[ "$(finding_of scripts)" == *"unknown command"* ]]
    run --separate-stderr holdfast doctor
    [[ "$output" == *"allow EVAL and EVALSHA"* ]]
}

@test "Doctor.ScriptsThatAreNotAtomicAreADanger" {
    start_named_server "$safe"$'\nmasteruser "allow-undeclared-keys disable-atomicity"'
    python3 "$BATS_TEST_DIRNAME/with_lua_flags.py" "$BOX/named/redis.sock" "$BOX/flags.sock" 3>&- &
    proxy=$!
    wait_until test -S "$BOX/flags.sock"
    HOLDFAST_URL=unix://$BOX/flags.sock examine
    [ "$status" -eq 2 ]
    [ "$(severity_of scripts)" = danger ]
    [[ "$(finding_of scripts)" == *disable-atomicity* ]]
    named_redis config set masteruser allow-undeclared-keys
    HOLDFAST_URL=unix://$BOX/flags.sock examine
    kill $proxy
    [ "$(severity_of scripts)" = ok ]
}

@test "Doctor.CommandsThatWereRenamedAreNamed" {
    start_named_server "$safe"$'\nrename-command ZADD ""\nrename-command PUBSUB ""'
    examine
    [ "$status" -eq 2 ]
    [ "$(severity_of scripts)" = ok ]
    [ "$(severity_of rights)" = danger ]
    [[ "$(finding_of rights)" == *ZADD* ]]
}

@test "Doctor.ServersThatLackResp3OrSubscriptionsAreNamedWithTheUrlOption" {
    start_named_server "$safe"
    examine
    [ "$(severity_of wake-ups)" = ok ]
    named_redis shutdown nosave
    rm -rf "$BOX/named"
    start_named_server "$safe"$'\nrename-command HELLO ""'
    examine
    [ "$(severity_of wake-ups)" = warning ]
    [ "$(severity_of rights)" = ok ]
    [[ "$output" == *"HELLO 3 is refused"*resp=2* ]]
    named_redis shutdown nosave
    rm -rf "$BOX/named"
    start_named_server "$safe"$'\nrename-command SUBSCRIBE ""'
    examine
    [ "$status" -eq 1 ]
    [ "$(severity_of wake-ups)" = warning ]
    [[ "$output" == *"waiters poll"*wake=poll* ]]
}

# run, ls, show, watch, top and release where nothing can wake anybody: a holder that hears no recall notices at its next
# renewal.
@test "Doctor.TheOtherCommandsWorkWhereResp3AndSubscriptionsAreLacking" {
    start_named_server $'rename-command HELLO ""\nrename-command SUBSCRIBE ""'
    local options url=$HOLDFAST_URL
    is_held() { [[ "$(holdfast ls 2>&1)" == *a* ]]; }
    has_a_waiter() { [ "$(named_redis zcard 'hf:{a}:queue')" = 1 ]; }
    for options in "" "?resp=2&wake=poll"; do
        export HOLDFAST_URL=$url$options
        start run --lease 2s a -- sleep 1000
        local first=$last
        wait_until is_held
        start run --lease 2s a -- touch "$BOX/second"
        local second=$last
        wait_until has_a_waiter
        local words
        for words in "show a" "watch a --count 1" "top --json --count 1" "release a --force --yes"; do
            run --separate-stderr holdfast $words
            [ "$status" -eq 0 ]
        done
        finish "$first"
        [ "$status" -eq 75 ]
        finish "$second"
        [ "$status" -eq 0 ]
        [ -e "$BOX/second" ]
        rm "$BOX/second"
    done
}
