# A primary that a sentinel watches: every command finds it by its name, and goes on when another one takes over.
load common

# It is what every command goes to.
setup_sentinel() {
    run_sentinel
    export HOLDFAST_URL=$sentinel_url
}
primary_port() { redis-cli -p "$sentinel" sentinel get-master-addr-by-name mine | tail -1; }
has_key() { [ "$(redis-cli -p "$1" exists "hf:$2")" = 1 ]; }
has_no_key() { [ "$(redis-cli -p "$1" exists "hf:$2")" = 0 ]; }
knows_a_fit_replica() { redis-cli -p "$sentinel" sentinel replicas mine | grep -A1 master-link-status | grep -qx ok; }
# NOGOODSLAVE and INPROG are answers, too, and no failure to redis-cli.
begins_failover() { [ "$(redis-cli -p "$sentinel" sentinel failover mine)" = OK ]; }
is_primary() { [ "$(primary_port)" = "$1" ] && [ "$(redis-cli -p "$1" role | head -1)" = master ]; }
takes_over() { wait_until begins_failover && wait_until is_primary "$1"; }
ms_left() { redis-cli -p "$1" pttl "hf:$2"; }
has_more_left() { [ "$(ms_left "$1" "$2")" -gt "$3" ]; }

@test "Sentinel.EveryCommandFindsThePrimary" {
    setup_sentinel
    local url=$HOLDFAST_URL
    unset HOLDFAST_URL
    hold a --url "$url"
    has_key "${port[1]}" "{a}"
    run --separate-stderr holdfast ls --url "$url" --json
    [ "$status" -eq 0 ]
    [ "$(of_json '[l["name"] for l in d["locks"]]' <<<"$output")" = "['a']" ]
    run --separate-stderr holdfast show a --url "$url" --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'd["lock"]["holders"][0]["client"]["pid"]' <<<"$output")" = "$last" ]
    run --separate-stderr holdfast top --url "$url" --json --count 1
    [ "$status" -eq 0 ]
    [ "$(of_json '[l["name"] for l in d["locks"]], d["silent"]' <<<"$output")" = "(['a'], [])" ]
    run --separate-stderr holdfast metrics --url "$url"
    [ "$status" -eq 0 ]
    grep -qx 'holdfast_holders{prefix=""} 1' <<<"$output"
    grep -qx 'holdfast_servers_up 1' <<<"$output"
    run --separate-stderr holdfast doctor --url "$url"
    [[ $output == *"redis+sentinel://127.0.0.1:$sentinel/mine/0"* ]]
    [[ $output == *"a primary"* ]]
    run --separate-stderr holdfast bench --url "$url" --seconds 0.1 --threads 2 --workload parallel
    [ "$status" -eq 0 ]
    env --default-signal=INT "$HOLDFAST_BIN" watch a --url "$url" --json --interval 20ms </dev/null >"$BOX/events" 2>&1 3>&- &
    started+=($!)
    wait_until has_line "$BOX/events" '"event":"held"'
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
    wait_until has_line "$BOX/events" '"event":"released"'
}

@test "Sentinel.AForcedReleaseTellsTheHolderAndServesTheNext" {
    setup_sentinel
    # Its next renewal is far off: whatever it learns, it learns by the message.
    hold a --max-lease 1h --lease 1h
    local first=$last
    start run --max-lease 1h a -- touch "$BOX/second"
    local second=$last
    wait_until has_key "${port[1]}" "{a}:queue"
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    finish "$first"
    [ "$status" -eq 75 ]
    finish "$second"
    [ "$status" -eq 0 ]
    [ -e "$BOX/second" ]
}

@test "Sentinel.ARunGoesOnWhenAnotherServerTakesOver" {
    setup_sentinel
    hold a --lease 15s
    local first=$last left
    start run a -- touch "$BOX/second"
    local second=$last
    wait_until has_key "${port[2]}" "{a}:queue"
    wait_until knows_a_fit_replica
    takes_over "${port[2]}"
    left=$(ms_left "${port[2]}" "{a}")
    wait_until has_more_left "${port[2]}" "{a}" "$left"  # it is renewed there
    is_alive "$first"
    let_go a
    finish "$first"
    [ "$status" -eq 0 ]
    finish "$second"
    [ "$status" -eq 0 ]
    [ -e "$BOX/second" ]
    wait_until has_no_key "${port[2]}" "{a}"
}

@test "Sentinel.ThatNobodyKnowsThePrimaryIsToldWithTheNameAndNoPassword" {
    setup_sentinel
    HOLDFAST_URL=redis+sentinel://:hunter2@127.0.0.1:$sentinel/other run --separate-stderr holdfast ls
    [ "$status" -ne 0 ]
    [[ $stderr == *'knows no primary "other"'* ]]
    [[ $stderr != *hunter2* ]]
    run --separate-stderr holdfast run --url "redis+sentinel://:hunter2@127.0.0.1:$sentinel/mine" a -- true
    [ "$status" -eq 125 ]
    [[ $stderr == *"command line"* ]]
    [[ $stderr != *hunter2* ]]
}
