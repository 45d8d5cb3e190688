# holdfast metrics: Prometheus text, once or over HTTP.
load common

some_locks() {
    start_local_server
    held_by 1 stock:1
    held_by 2 stock:2
    read_by catalog:x 1 2 3
    held_by 3 plain
    waited_for_by 4 stock:1 50
    waited_for_by 5 stock:1 5
}
# The value of one series in $output; nothing if it is not there.
value() { sed -n "s/^$1 //p" <<<"$output"; }
serve() {
    "$HOLDFAST_BIN" metrics --listen "${1:-127.0.0.1:0}" </dev/null >/dev/null 2>"$BOX/serve" 3>&- &
    server=$!
    started+=("$server")
    wait_until has_line "$BOX/serve" 'listening on'
    url=$(sed -n 's/.*listening on \(.*\)\/metrics$/\1/p' "$BOX/serve")
}

@test "Metrics.CountLocksHoldersAndWaitersByPrefix" {
    some_locks
    run --separate-stderr holdfast metrics
    [ "$status" -eq 0 ]
    [ "$(value holdfast_up)" = 1 ]
    [ "$(value 'holdfast_locks{prefix="stock",mode="exclusive"}')" = 2 ]
    [ "$(value 'holdfast_locks{prefix="catalog",mode="read"}')" = 1 ]
    [ "$(value 'holdfast_locks{prefix="",mode="exclusive"}')" = 1 ]
    [ "$(value 'holdfast_holders{prefix="catalog"}')" = 3 ]
    [ "$(value 'holdfast_waiters{prefix="stock"}')" = 2 ]
    [ "$(value 'holdfast_waiters{prefix="catalog"}')" = 0 ]
    python3 -c "import sys; sys.exit(not 50 <= float('$(value 'holdfast_oldest_wait_seconds{prefix="stock"}')') < 150)"
    python3 -c "import sys; sys.exit(not 2 <= float('$(value 'holdfast_longest_hold_seconds{prefix="stock"}')') < 150)"
    # Every family is announced once, and every line is of the form.
    [ "$(grep '^# TYPE' <<<"$output" | sort | uniq -d)" = "" ]
    run ! grep -vE '^(# (HELP|TYPE) holdfast_[a-z_]+ .*|holdfast_[a-z_]+(\{prefix="[^"]*"(,mode="[a-z]+")?\})? [0-9.e+-]+)$' <<<"$output"
}

@test "Metrics.PrefixesAreEscaped" {
    start_local_server
    held_by 1 'a"b\c:1'
    run --separate-stderr holdfast metrics
    [[ "$output" == *'prefix="a\"b\\c"'* ]]
}

@test "Metrics.AreServedOverHttpUntilASignal" {
    some_locks
    serve
    run curl -sS -D "$BOX/head" "$url/metrics"
    [ "$status" -eq 0 ]
    [ "$(value 'holdfast_waiters{prefix="stock"}')" = 2 ]
    grep -q '^HTTP/1.1 200 OK' "$BOX/head"
    grep -qi '^content-type: text/plain; version=0.0.4' "$BOX/head"
    redis flushall >/dev/null
    run curl -sS "$url/metrics?x=1"
    [ "$(value 'holdfast_waiters{prefix="stock"}')" = "" ]
    [ "$(curl -sS -o /dev/null -w '%{http_code}' "$url/nothing")" = 404 ]
    [ "$(curl -sS -o /dev/null -w '%{http_code}' -X POST -d x "$url/metrics")" = 405 ]
    [ "$(curl -sS -I -o /dev/null -w '%{http_code}' "$url/metrics")" = 200 ]
    kill -TERM "$server"
    finish "$server"
    [ "$status" -eq 0 ]
}

@test "Metrics.ServerThatIsAwayIsUpZero" {
    start_named_server 'save ""'
    serve
    kill -KILL "$(cat "$BOX/named.pid")"
    run curl -sS "$url/metrics"
    [ "$(value holdfast_up)" = 0 ]
    rm -f "$BOX/named/redis.sock"
    start_named_server 'save ""'
    is_up_again() { curl -sS "$url/metrics" | grep -qx 'holdfast_up 1'; }
    wait_until is_up_again
}

@test "Metrics.NonsenseAndSlowSpeakersDoNotStopOthers" {
    start_local_server
    serve
    local port=${url##*:}
    # One says nothing, one says nonsense, one too much.
    exec 7<>"/dev/tcp/127.0.0.1/$port"
    exec 8<>"/dev/tcp/127.0.0.1/$port"
    printf 'what is this\r\n\r\n' >&8
    run head -n 1 <&8
    [[ "$output" == *"400 Bad Request"* ]]
    run curl -sS -o /dev/null -w '%{http_code}' -H "x: $(head -c 20000 /dev/zero | tr '\0' x)" "$url/metrics"
    [[ "$output" == *431* || "$status" -ne 0 ]]
    run curl -sS "$url/metrics"
    [ "$(value holdfast_up)" = 1 ]
    exec 7>&- 8>&-
}

@test "Metrics.AddressThatCannotBeUsedIs125" {
    start_local_server
    serve
    run --separate-stderr holdfast metrics --listen "${url#http://}"
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"in use"* ]]
    for address in 9421 here 127.0.0.1: 127.0.0.1:x :9421; do
        run --separate-stderr holdfast metrics --listen "$address"
        [ "$status" -eq 125 ]
        [[ "$stderr" == *"--listen $address"* ]]
    done
}

@test "Metrics.OfAnUnreachableServerAre125" {
    run --separate-stderr holdfast metrics --url redis://127.0.0.1:1
    [ "$status" -eq 125 ]
    [ -z "$output" ]
}
