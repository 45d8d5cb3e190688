# holdfast watch: a line for every event, and nobody is disturbed.
load common

start_watching() {
    env --default-signal=INT,QUIT "$HOLDFAST_BIN" watch --json --interval 20ms "$@" </dev/null >"$BOX/events" 2>"$BOX/watch.err" 3>&- &
    watcher=$!
    started+=("$watcher")
    # It looks by a script; when it has begun to look again, the first look is over.
    local before
    before=$(looks)
    wait_until looks_more_often_than $((before + 3))
}
looks() { redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p' | grep . || echo 0; }
looks_more_often_than() { [ "$(looks)" -gt "$1" ]; }
events() { python3 -c '
import json, sys
for line in open(sys.argv[1]):
    d = json.loads(line)
    print(d["event"], (d["client"] or {}).get("pid", (d["id"] or "?")[-1]))' "$BOX/events"; }
has_event() { events | grep -qx -- "$1"; }

@test "Watch.TellsAcquiredWaitingHandedOverAndReleased" {
    start_local_server
    start_watching a
    hold a
    local first=$last
    wait_until has_event "acquired $first"
    start run -q a -- sh -c "$cat_until_told" hold b
    local second=$last
    wait_until has_event "waiting $second"
    let_go a
    wait_until has_event "handed over $second"
    has_event "released $first"
    let_go b
    wait_until has_event "released $second"
    finish "$first"
    finish "$second"
    [ "$(events | cut -d' ' -f1 | tr '\n' ' ')" = "acquired waiting released handed released " ]
    run tail -n 1 "$BOX/events"
    [ "$(of_json 'd["name"], d["held_ms"] >= 0, d["token"] > 10**15' <<<"$output")" = "('a', True, True)" ]
    run sed -n 4p "$BOX/events"
    [ "$(of_json 'd["waited_ms"] >= 0 and d["from"].startswith("hf_")' <<<"$output")" = True ]
}

@test "Watch.IsToldOfAMutexAndDoesNotWaitForTheNextLook" {
    start_local_server
    env --default-signal=INT,QUIT "$HOLDFAST_BIN" watch a --json --interval 60s >"$BOX/events" 2>/dev/null 3>&- &
    watcher=$!
    started+=("$watcher")
    is_watched() { [ "$(redis hexists 'hf:{a}:waiters' watch)" = 1 ]; }
    wait_until is_watched
    hold a
    local holder=$last
    wait_until has_event "acquired $holder"
    let_go a
    wait_until has_event "released $holder"
    kill -INT "$watcher"
    finish "$watcher"
    [ "$status" -eq 0 ]
}

@test "Watch.TellsExpiredAndGaveUp" {
    start_local_server
    held_by 1 a
    waited_for_by 2 a 1
    start_watching a
    wait_until has_event "held 1"
    wait_until has_event "waiting 2"
    redis zrem 'hf:{a}:queue' "$(hold_id 2)" >/dev/null
    wait_until has_event "gave up 2"
    redis pexpire 'hf:{a}' 2000 >/dev/null
    wait_until has_event "expired 1"
    run ! has_event "released 1"
}

@test "Watch.TellsUpgradesAndReaders" {
    start_local_server
    read_by a 1 2
    start_watching a
    wait_until has_event "held 2"
    redis hdel 'hf:{a}' "r:$(hold_id 2)" >/dev/null
    wait_until has_event "released 2"
    redis hset 'hf:{a}' writer "$(hold_id 1)" wcount 1 mode write >/dev/null
    wait_until has_event "upgraded 1"
    redis eval "redis.call('HDEL', KEYS[1], 'writer', 'wcount') redis.call('HSET', KEYS[1], 'mode', 'read')" 1 'hf:{a}' >/dev/null
    wait_until has_event "downgraded 1"
}

@test "Watch.TellsOfAHoldItMissedByItsToken" {
    start_local_server
    redis set 'hf:{a}:fence' 100 px 3600000 >/dev/null
    start_watching a
    # Acquired and released in one instant.
    redis set 'hf:{a}:fence' 200 px 3600000 >/dev/null
    wait_until has_event 'missed ?'
    [ "$(tail -n 1 "$BOX/events" | of_json 'd["token"]')" = 200 ]
}

@test "Watch.DoesNotCountAsAListener" {
    start_local_server
    hold a
    start run -q a -- true
    wait_until someone_waits_for a
    local second=$last
    local channel
    channel=$(redis zrange 'hf:{a}:queue' 0 0)
    channel=hf:wake:${channel%%.*}
    [ "$(redis pubsub numsub "$channel" | tail -n 1)" = 1 ]
    start_watching a
    wait_until has_event "waiting $second"
    [ "$(redis pubsub numsub "$channel" | tail -n 1)" = 1 ]
    # The waiter dies without a word: nobody listens for it any more, whoever watches.
    kill -KILL "$second"
    nobody_listens() { [ "$(redis pubsub numsub "$channel" | tail -n 1)" = 0 ]; }
    wait_until nobody_listens
    let_go a
    wait_until lock_is_free a
    wait_until has_event "gave up $second"
}

@test "Watch.EndsByASignalWithZeroAndAfterCount" {
    start_local_server
    start_watching a
    kill -INT "$watcher"
    finish "$watcher"
    [ "$status" -eq 0 ]
    held_by 1 a
    waited_for_by 2 a 1
    run --separate-stderr holdfast watch a --count 1
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *Z*held*hf_*token* ]]
}

@test "Watch.EndsWhenNobodyReadsItAnyMore" {
    start_local_server
    mkfifo "$BOX/pipe"
    head -n 1 "$BOX/pipe" >"$BOX/first" 3>&- &
    "$HOLDFAST_BIN" watch a --interval 20ms >"$BOX/pipe" 2>/dev/null 3>&- &
    watcher=$!
    started+=("$watcher")
    flip() {
        redis set 'hf:{a}' "x$RANDOM" px 1000 >/dev/null
        is_gone "$watcher"
    }
    wait_until flip
}

@test "Watch.GoesOnAfterTheServerWasAway" {
    start_named_server 'save ""'
    redis() { named_redis "$@"; }
    start_watching a
    kill -KILL "$(cat "$BOX/named.pid")"
    wait_until has_line "$BOX/watch.err" 'holdfast: '
    rm -f "$BOX/named/redis.sock"
    start_named_server 'save ""'
    held_by 1 a
    wait_until has_event "acquired 1"
    has_line "$BOX/watch.err" 'answers again'
}
