# holdfast web: what its server promises, asked with curl. The page itself is tested in a browser: tests/web.
load common

# web OPTION...: serves in the background; its address is in $url.
web() {
    : >"$BOX/web"
    "$HOLDFAST_BIN" web --listen "${address:-127.0.0.1:0}" --interval 100ms "$@" </dev/null >/dev/null 2>"$BOX/web" 3>&- &
    web=$!
    started+=("$web")
    wait_until has_line "$BOX/web" 'listening on'
    url=$(sed -n 's/.*listening on \(http:[^ #]*\)\/.*/\1/p' "$BOX/web")
    token=$(sed -n 's/.*#token=\([^ ]*\)$/\1/p' "$BOX/web")
}
status_of() { curl -sS -o /dev/null -w '%{http_code}' "$@"; }
# listen FILE OPTION...: a browser's stream, until the test ends.
listen() {
    curl -sSN "${@:2}" "$url/events" >"$1" 2>/dev/null 3>&- &
    started+=($!)
    wait_until has_line "$1" '^event: state'
}
# The values of a field of all rows in the stream.
rows() { sed -n 's/^data: //p' "$1" | python3 -c 'import json, sys
for line in sys.stdin:
    d = json.loads(line)
    for row in d.get("locks", []) + d.get("set", []): print(row["name"], row.get("'"$2"'"))'; }
has_row() { rows "$1" "$2" | grep -qxF -- "$3"; }

@test "Web.PageIsOneAnswerThatNeedsNothingElse" {
    start_local_server
    web
    curl -sS -D "$BOX/head" "$url/" >"$BOX/page"
    grep -q '^HTTP/1.1 200 OK' "$BOX/head"
    grep -qi '^content-type: text/html; charset=utf-8' "$BOX/head"
    # Nothing is fetched from anywhere: no address with a host but the names of XML.
    [ -z "$(grep -oE '(src|href|url\()=?["'"'"'(]*https?://[^"]*|@import' "$BOX/page")" ]
    # The policy lets only this one script run, and never text as markup.
    policy=$(grep -i '^content-security-policy:' "$BOX/head")
    nonce=$(sed -n "s/.*script-src 'nonce-\([0-9a-f]*\)'.*/\1/p" <<<"$policy")
    [ "${#nonce}" -eq 32 ]
    [[ "$policy" == *"default-src 'none'"* && "$policy" == *"require-trusted-types-for 'script'"* && "$policy" == *"frame-ancestors 'none'"* ]]
    [[ "$policy" != *unsafe* ]]
    [ "$(grep -c "nonce=\"$nonce\"" "$BOX/page")" -eq 2 ]
    run ! grep -qE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\{\{' "$BOX/page"
    # Each answer has a nonce of its own.
    [ "$(curl -sS "$url/" | grep -c "$nonce")" -eq 0 ]
    grep -qi '^x-content-type-options: nosniff' "$BOX/head"
    grep -qi '^cache-control: no-store' "$BOX/head"
    [ "$(status_of "$url/nothing")" = 404 ]
    [ "$(status_of -I "$url/")" = 200 ]
    kill -TERM "$web"
    finish "$web"
    [ "$status" -eq 0 ]
}

@test "Web.StreamTellsAllLocksAndThenWhatChanges" {
    start_local_server
    introduce 1
    held_by 1 stock:1
    waited_for_by 2 stock:1 5
    web
    is_seen() { listen "$BOX/first"; has_row "$BOX/first" waiters "stock:1 1"; }
    wait_until is_seen
    listen "$BOX/stream"
    grep -q '"program":"prog-1"' "$BOX/stream"
    run ! grep -q '"kept":true' "$BOX/stream"
    kept_by 2 later
    wait_until has_row "$BOX/stream" holders "later 1"
    wait_until has_line "$BOX/stream" '"kept":true'
    redis del 'hf:{later}' >/dev/null
    wait_until has_line "$BOX/stream" '"gone":\["hf:~7Blater~7D"\]'
    # Whoever comes later is told what there is now.
    listen "$BOX/late"
    [ "$(rows "$BOX/late" token | sort -u | wc -l)" -eq 1 ]
    wait_until has_line "$BOX/stream" '^event: health'
    sed -n '/^event: health/{n;s/^data: //p}' "$BOX/stream" | of_json 'd["servers"][0]["checks"][0]["check"]'
}

@test "Web.PageOfALockHasItsQueueAndWhoHeldItBefore" {
    start_local_server
    web
    hold job
    start run job -- true
    wait_until someone_waits_for job
    sleep 0.3
    let_go job
    key=hf:~7Bjob~7D
    tells() { curl -sS "$url/lock?key=$key" | of_json "$1" 2>/dev/null | grep -qx "$2"; }
    wait_until tells '[h["waited_ms"] is None for h in d["history"]["holds"] if h["until"]]' '\[True, False\]'
    tells 'd["web_key"], d["name"], d["holders"]' "('$key', 'job', \[\])"
    [ "$(status_of "$url/lock?key=nothing")" = 404 ]
    [ "$(status_of "$url/lock")" = 404 ]
}

@test "Web.OtherNamesAndOtherSitesAreRefused" {
    start_local_server
    web
    for path in / /events /lock /metrics; do
        [ "$(status_of -m 5 -H 'Host: evil.example' "$url$path")" = 421 ]
        [ "$(status_of -m 5 -H 'Host: localhost.evil.example:7575' "$url$path")" = 421 ]
        [ "$(status_of -m 5 -H 'Origin: http://evil.example' "$url$path")" = 403 ]
        [ "$(status_of -m 5 -H 'Origin: null' "$url$path")" = 403 ]
        [ "$(status_of -m 5 -H 'Sec-Fetch-Site: cross-site' "$url$path")" = 403 ]
    done
    [ "$(status_of -H 'Host: localhost:9999' "$url/metrics")" = 200 ] # as through ssh -L
    [ "$(status_of -H "Origin: $url" "$url/metrics")" = 200 ]
    [ "$(status_of -X OPTIONS -H 'Origin: http://evil.example' "$url/metrics")" = 405 ]
    kill -TERM "$web"
    finish "$web"
    web --host Locks.Example
    [ "$(status_of -H 'Host: locks.example' "$url/metrics")" = 200 ]
}

@test "Web.OnlyShowsUnlessReleasesAreAllowed" {
    start_local_server
    held_by 1 stock:1
    web
    post() { status_of -X POST -d "$1" "${@:2}" "$url/release"; }
    [ -z "$token" ]
    [ "$(post '{"key":"hf:~7Bstock:1~7D","holder":"'"$(hold_id 1)"'"}')" = 401 ]
    [ "$(post '{"key":"hf:~7Bstock:1~7D","holder":"'"$(hold_id 1)"'"}' -H 'Authorization: Bearer ')" = 401 ]
    [ "$(status_of "$url/release")" = 404 ]
    [ "$(redis exists 'hf:{stock:1}')" = 1 ]
}

@test "Web.WhoHasTheTokenReleasesExactlyTheHoldThatWasSeen" {
    start_local_server
    start run stock:1 -- sh -c 'touch "$BOX/runs"; exec sleep 600'
    job=$last
    wait_until test -e "$BOX/runs"
    web --allow-release
    [ "${#token}" -eq 32 ]
    # Looking needs none.
    listen "$BOX/stream"
    wait_until has_row "$BOX/stream" holders "stock:1 1"
    holder=$(redis get 'hf:{stock:1}')
    release() { status_of -X POST -d "{\"key\":\"hf:~7Bstock:1~7D\",\"holder\":\"$2\"}" -H "Authorization: Bearer $1" "${@:3}" "$url/release"; }
    [ "$(release wrong "$holder")" = 401 ]
    [ "$(release "$token" "$holder" -H 'Origin: http://evil.example')" = 403 ]
    [ "$(release "$token" hf_another)" = 409 ]
    [ "$(status_of -X POST -d nonsense -H "Authorization: Bearer $token" "$url/release")" = 404 ]
    [ "$(status_of -X POST -d "$(head -c 20000 /dev/zero | tr '\0' x)" -H "Authorization: Bearer $token" "$url/release")" = 413 ]
    is_alive "$job"
    [ "$(release "$token" "$holder")" = 202 ]
    finish "$job"
    [ "$status" -eq 75 ]
    wait_until has_line "$BOX/stream" '^event: notice'
    grep -q '"ok":true,"text":"stopped, and released it"' "$BOX/stream"
    grep -q "'stock:1': stopped, and released it" "$BOX/web"
}

@test "Web.OtherAddressesNeedATokenAndThenEverybodyDoes" {
    start_local_server
    run --separate-stderr holdfast web --listen 0.0.0.0:0
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"--token"* ]]
    export HOLDFAST_WEB_TOKEN=short
    run --separate-stderr holdfast web --token
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"HOLDFAST_WEB_TOKEN is too short"* ]]
    export HOLDFAST_WEB_TOKEN=a-token-of-our-own
    address=0.0.0.0:0 web --token
    run ! grep -q "$HOLDFAST_WEB_TOKEN" "$BOX/web"
    run ! grep -q 'no variable of holdfast' "$BOX/web"
    url=http://127.0.0.1:${url##*:}
    [ "$(status_of "$url/")" = 200 ] # the page has no data
    for path in /events /lock /metrics; do
        [ "$(status_of "$url$path")" = 401 ]
        [ "$(status_of -H 'Authorization: Bearer a-token-of-our-owm' "$url$path")" = 401 ]
    done
    [ "$(status_of -H "Authorization: Bearer $HOLDFAST_WEB_TOKEN" "$url/metrics")" = 200 ]
}

@test "Web.MetricsAreThoseOfTheMetricsCommandWithoutAskingTheServer" {
    start_local_server
    held_by 1 stock:1
    waited_for_by 2 stock:1 5
    web
    is_there() { curl -sS "$url/metrics" | grep -qx 'holdfast_waiters{prefix="stock"} 1'; }
    wait_until is_there
    [ "$(curl -sS "$url/metrics" | grep '^#')" = "$(holdfast metrics | grep '^#')" ]
}

@test "Web.ServerIsAskedEquallyOftenHoweverManyLook" {
    start_local_server
    "$HOLDFAST_BIN" web --listen 127.0.0.1:0 --interval 1h </dev/null >/dev/null 2>"$BOX/web" 3>&- &
    started+=($!)
    wait_until has_line "$BOX/web" 'listening on'
    url=$(sed -n 's/.*listening on \(http:.*\)\//\1/p' "$BOX/web")
    is_examined() { listen "$BOX/stream"; grep -q '^event: health' "$BOX/stream"; }
    wait_until is_examined
    scans() { redis info commandstats | tr -d '\r' | sed -n 's/^cmdstat_scan:calls=\([0-9]*\),.*/\1/p'; }
    before=$(scans)
    for i in $(seq 20); do listen "$BOX/stream$i"; curl -sS "$url/metrics" >/dev/null; done
    [ "$(scans)" = "$before" ]
}

@test "Web.ServerThatIsAwayIsToldAndItsReturnToo" {
    start_named_server 'save ""'
    web
    listen "$BOX/stream"
    kill -KILL "$(cat "$BOX/named.pid")"
    wait_until has_line "$BOX/stream" '^event: trouble'
    curl -sS "$url/metrics" | grep -qx 'holdfast_up 0'
    rm -f "$BOX/named/redis.sock"
    start_named_server 'save ""'
    is_back() { curl -sS "$url/metrics" | grep -qx 'holdfast_up 1'; }
    wait_until is_back
}

@test "Web.AddressThatCannotBeUsedIs125" {
    start_local_server
    web
    run --separate-stderr holdfast web --listen "${url#http://}"
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"--listen ${url#http://}: "*"in use"* ]]
    for address in 7575 here 127.0.0.1: 127.0.0.1:x :7575; do
        run --separate-stderr holdfast web --listen "$address"
        [ "$status" -eq 125 ]
        [[ "$stderr" == *"--listen $address: write HOST:PORT"* ]]
    done
    run --separate-stderr holdfast web --interval 1ms
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"--interval: at least 50ms"* ]]
}
