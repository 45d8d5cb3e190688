# A plain server, a primary that a sentinel watches and a Cluster: the three nodes of one lock.
load common

# All are just started, and grant when the longest lease is over; so that is short here.
setup_mix() {
    run_redis plain 'save ""'
    plain=$free_port
    run_sentinel
    run_cluster 2
    urls=("redis://127.0.0.1:$plain" "$sentinel_url" "redis+cluster://127.0.0.1:${members[1]}")
    by_url=(--url "${urls[0]}" --url "${urls[1]}" --url "${urls[2]}")
    export HOLDFAST_MAX_LEASE=5s
}
# What each of the three has; in the Cluster it is where its slot is.
holders() {
    local at
    for at in "$plain" "${port[1]}" "${members[@]}"; do redis-cli -p "$at" get "hf:{$1}" 2>/dev/null | grep '^hf_' || true; done
}
all_say_the_same() { [ "$(holders "$1" | wc -l) $(holders "$1" | sort -u | wc -l)" = "3 1" ]; }
nobody_says_anything() { [ -z "$(holders "$1")" ]; }
# A new client takes the servers for younger; until they grant to it as well, the status is another one.
is_refused() {
    run holdfast run "${by_url[@]}" --no-wait "$1" -- touch "$BOX/entered"
    [ "$status" -eq 1 ]
}
backing() { of_json '[(l["name"], h["backing"]["servers"], h["backing"]["of"]) for l in d["locks"] for h in l["holders"]]' <<<"$output"; }

@test "Mixed.RunHoldsTheLockOnAllThreeAndLsTellsSo" {
    setup_mix
    hold a "${by_url[@]}"
    wait_until all_say_the_same a
    run --separate-stderr holdfast ls "${by_url[@]}" --json
    [ "$status" -eq 0 ]
    [ "$(backing)" = "[('a', 3, 3)]" ]
    wait_until is_refused a
    [ ! -e "$BOX/entered" ]
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
    wait_until nobody_says_anything a
}

@test "Mixed.RunAndLsGoOnWithoutThePlainServer" {
    setup_mix
    kill -KILL "$(cat "$BOX/plain.pid")"
    hold a "${by_url[@]}"
    run --separate-stderr holdfast ls "${by_url[@]}" --json
    [ "$status" -eq 0 ]
    [ "$(of_json '[l["name"] for l in d["locks"]], [s["server"] for s in d["silent"]]' <<<"$output")" = "(['a'], ['${urls[0]}/0'])" ]
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
}

@test "Mixed.DoctorExaminesEachAndThenAllTogether" {
    setup_mix
    run --separate-stderr holdfast doctor "${by_url[@]}" --json
    [ "$(of_json '[s["server"] for s in d["servers"][:2]], len(d["servers"])' <<<"$output")" = "(['${urls[0]}/0', '${urls[1]}/0'], 5)" ]
    [ "$(of_json 'd["servers"][4]["server"]' <<<"$output")" = "${urls[2]}" ]
    [ "$(of_json 'all(c["severity"] == "ok" for s in d["servers"][:4] for c in s["checks"] if c["check"] in ("role", "rights"))' <<<"$output")" = True ]
    [ "$(of_json '[(c["check"], c["severity"], c["finding"]) for c in d["together"]["checks"]][:3]' <<<"$output")" = \
        "[('majority', 'ok', '3 of 3 servers answer, 2 are needed'), ('number', 'ok', '3 servers'), ('twins', 'ok', 'each is a server of its own')]" ]
}
