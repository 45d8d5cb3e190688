# holdfast bench: a user's own server is measured, and left as it was.
load common

no_keys_of_locks() { [ -z "$(redis --scan --pattern 'hf:{*')" ]; }

@test "Bench.JsonHasEveryWorkloadWithItsFigures" {
    run --separate-stderr holdfast bench --seconds 0.2 --threads 4 --json
    [ "$status" -eq 0 ]
    [ "$(of_json '[w["workload"] for w in d["workloads"]]' <<<"$output")" = "['uncontended', 'parallel', 'contended', 'read-mostly']" ]
    [ "$(of_json 'd["seconds"], d["threads"], len(d["servers"])' <<<"$output")" = "(0.2, 4, 1)" ]
    [ "$(of_json 'all(w["cycles"] >= 1 and w["cycles_per_second"] > 0 for w in d["workloads"])' <<<"$output")" = True ]
    [ "$(of_json 'all(sum(b["count"] for b in w["histogram"]) == w["cycles"] for w in d["workloads"])' <<<"$output")" = True ]
    local ordered='[[w["latency_us"][k] for k in ("min", "p50", "p90", "p99", "p99_9", "max")] for w in d["workloads"]]'
    [ "$(of_json "all(l == sorted(l) and l[0] > 0 for l in $ordered)" <<<"$output")" = True ]
    no_keys_of_locks
}

@test "Bench.CycleThatNobodyContendsIsExactlyTwoCommands" {
    run --separate-stderr holdfast bench --seconds 0.2 --workload uncontended --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'd["workloads"][0]["commands_per_cycle"]' <<<"$output")" = 2.0 ]
    [ "$(of_json 'd["workloads"][0]["calls_per_cycle"] > 2' <<<"$output")" = True ]
}

@test "Bench.HandOverIsTwoCommandsToo" {
    run --separate-stderr holdfast bench --seconds 0.2 --threads 8 --workload contended --json
    [ "$status" -eq 0 ]
    [ "$(of_json '2.0 <= d["workloads"][0]["commands_per_cycle"] < 2.1' <<<"$output")" = True ]
}

@test "Bench.ShowsATableAndAPictureOfEveryWorkload" {
    run --separate-stderr holdfast bench --seconds 0.1 --threads 2 --workload parallel --workload read-mostly
    [ "$status" -eq 0 ]
    [[ "$output" == *WORKLOAD*CYCLES/S*P50*P99.9*COMMANDS/CYCLE* ]]
    [ "$(grep -c '^parallel' <<<"$output")" -eq 2 ]    # in the table, and over its picture
    [ "$(grep -c '^read-mostly' <<<"$output")" -eq 2 ]
    [ "$(grep -c '^uncontended' <<<"$output")" -eq 0 ]
    grep -q '^ *<[0-9.]*[mµn]*s  [█▏▎▍▌▋▊▉]* *[0-9.]*%$' <<<"$output"
    [[ "$output" != *$'\e['* ]]
    [ -z "$(grep -v '^holdfast: started' <<<"$stderr")" ] # no progress where nobody looks
}

@test "Bench.ShowsProgressOnATerminal" {
    open_terminal
    type_line '"$HOLDFAST_BIN" bench --seconds 3 --workload contended; echo "status=$?"'
    wait_until shows '^contended *\[#*\.*\] *[1-9][0-9]*%  [0-9,]* cycles'
    wait_until shows '^status=0'
    run ! shows '%  [0-9,]* cycles' # the bar is gone
    shows '^WORKLOAD'
    no_keys_of_locks
}

@test "Bench.ThatIsInterruptedRemovesItsKeys" {
    start bench --seconds 60 --threads 4 --workload contended
    works() { [ -n "$(redis --scan --pattern 'hf:{bench:*')" ]; }
    wait_until works
    kill -INT "$last"
    finish "$last"
    [ "$status" -eq 130 ]
    no_keys_of_locks
}

@test "Bench.OfAServerThatGoesAwayEnds" {
    start bench --seconds 5 --threads 4 --workload contended
    works() { [ -n "$(redis --scan --pattern 'hf:{bench:*')" ]; }
    wait_until works
    kill -KILL "$(server_pid)"
    finish "$last"
    [ "$status" -eq 125 ]
    has_line "$BOX/out" '^holdfast: '
}

@test "Bench.WithoutTheRightToCountMeasuresAllTheSame" {
    start_named_server 'save ""'
    named_redis acl setuser u on '>pw' +@all -info '~*' '&*' >/dev/null
    HOLDFAST_URL=unix://u:pw@$BOX/named/redis.sock run --separate-stderr holdfast bench --seconds 0.1 --workload uncontended --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'd["workloads"][0]["commands_per_cycle"]' <<<"$output")" = None ]
    [ "$(of_json 'd["workloads"][0]["cycles"] > 0' <<<"$output")" = True ]
}

@test "Bench.MisuseIs125" {
    for misuse in "--seconds 0" "--seconds x" "--threads 0" "--workload odd" "--url redis://127.0.0.1:1"; do
        run holdfast bench $misuse
        echo "$misuse: $status: $output"
        [ "$status" -eq 125 ]
    done
}
