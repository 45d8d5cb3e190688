# holdfast ls and show: what is in Redis, told to people and programs.
load common

@test "Ls.OfNothingIsEmptyAndFine" {
    run --separate-stderr holdfast ls
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [[ "$stderr" == *"nothing is locked"* ]]
    run --separate-stderr holdfast ls --json
    [ "$(of_json 'len(d["locks"])' <<<"$output")" = 0 ]
}

@test "Ls.ShowsHolderLeaseTokenAndWaitersOfRealProcesses" {
    hold a --lease 50s
    holder=$last
    start run -q a -- true
    wait_until someone_waits_for a
    run --separate-stderr holdfast ls
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == NAME*MODE*HOLDER*FOR*LEFT*TOKEN*WAITERS*LONGEST* ]]
    [[ "${lines[1]}" == a*exclusive*"$(id -un)@$(hostname) holdfast:sh[$holder]"*"$(redis get 'hf:{a}:fence')"*1* ]]
    run --separate-stderr holdfast ls --json
    [ "$(of_json 'd["locks"][0]["holders"][0]["client"]["pid"]' <<<"$output")" = "$holder" ]
    [ "$(of_json 'd["locks"][0]["waiters"][0]["client"]["pid"]' <<<"$output")" = "$last" ]
    [ "$(of_json '40000 < d["locks"][0]["holders"][0]["lease_left_ms"] <= 50000' <<<"$output")" = True ]
    [ "$(of_json 'd["servers"]' <<<"$output")" = "['unix://$HOLDFAST_HOME/redis.sock']" ]
    let_go a
    finish "$holder"
    finish "$last"
}

@test "Ls.HidesFreeLocksUnlessAll" {
    holdfast run -q gone -- true
    run --separate-stderr holdfast ls --names
    [ -z "$output" ]
    run --separate-stderr holdfast ls --names --all
    [ "$output" = gone ]
    run --separate-stderr holdfast ls --all
    [[ "${lines[1]}" == gone*free* ]]
}

@test "Ls.FindsTenThousandLocks" {
    start_local_server
    python3 - <<'TEXT' >"$BOX/fill"
def encode(*words):
    return "*%d\r\n" % len(words) + "".join("$%d\r\n%s\r\n" % (len(w), w) for w in words)
for i in range(10000):
    print(encode("SET", "hf:{job:%d}" % i, "hf_%016d.1.%022d" % (i, i), "PX", "600000"), end="")
    print(encode("SET", "other:%d" % i, "x"), end="")
TEXT
    redis --pipe <"$BOX/fill" >/dev/null
    run --separate-stderr holdfast ls --names
    [ "${#lines[@]}" -eq 10000 ]
    [ "$(sort -u <<<"$output" | wc -l)" -eq 10000 ]
    # Never KEYS, and not a round trip for each of them.
    [[ "$(redis info commandstats)" != *cmdstat_keys:* ]]
    [[ "$(redis info commandstats)" == *cmdstat_scan:* ]]
    run --separate-stderr holdfast ls 'job:99?' --json
    [ "$(of_json 'len(d["locks"])' <<<"$output")" = 10 ]
}

@test "Ls.FindsRawLocksByTheirSideKeysAndNoOtherProgramsKeys" {
    hold plain --keys raw
    redis set 'other' 'value' >/dev/null
    redis zadd 'bull:{mail}:queue' 1 job >/dev/null
    redis hset 'shop:{7}:waiters' table 4 >/dev/null
    redis lpush '{mail}:queue' job >/dev/null
    redis set 'x:{1}:fence' 'garden' >/dev/null
    redis lpush 'hf:{list}' job >/dev/null
    run --separate-stderr holdfast ls
    [ "${#lines[@]}" -eq 2 ]
    [[ "${lines[1]}" == "plain (raw)"*exclusive* ]]
    let_go plain
    finish "$last"
}

@test "Ls.TagInARawNameIsKept" {
    hold 'app:{7}:lock' --keys raw
    run --separate-stderr holdfast ls --json
    [ "$(of_json '[(l["name"], l["keys"], l["mode"]) for l in d["locks"]]' <<<"$output")" = "[('app:{7}:lock', 'raw', 'exclusive')]" ]
    let_go 'app:{7}:lock'
    finish "$last"
}

@test "Ls.RawNameInBracesIsNotTakenForTheOneWithout" {
    hold '{x}' --keys raw
    run --separate-stderr holdfast ls --all --json
    [ "$(of_json '[(l["name"], l["mode"]) for l in d["locks"]]' <<<"$output")" = "[('{x}', 'exclusive')]" ]
    let_go '{x}'
    finish "$last"
    hold x --keys raw
    run --separate-stderr holdfast ls --all --json
    [ "$(of_json '[(l["name"], l["mode"]) for l in d["locks"]]' <<<"$output")" = "[('x', 'exclusive')]" ]
    let_go x
    finish "$last"
}

@test "Ls.NamesStartNoServer" {
    run --separate-stderr holdfast ls --names
    [ "$status" -eq 0 ]
    [ -z "$output$stderr" ]
    [ ! -e "$HOLDFAST_HOME/redis.sock" ]
}

@test "Ls.TerminalCodesInNamesAndCardsAreNotPassedOn" {
    start_local_server
    introduce 1
    redis hset "hf:client:hf_0000000000000001" host $'evil\e[2Jhost' >/dev/null
    held_by 1 $'na\e]0;me\nx'
    held_by 2 库存
    run --separate-stderr holdfast ls
    [[ "$output" != *$'\e'* ]]
    [[ "$output" == *"na_]0;me_x"*"evil_[2Jhost"* ]]
    [[ "$output" == *库存* ]]
    run --separate-stderr holdfast ls --names
    [ "$output" = 库存 ]
}

@test "Show.TellsHolderAndQueueInOrder" {
    start_local_server
    introduce 1
    introduce 3
    held_by 1 a
    waited_for_by 2 a 5
    waited_for_by 3 a 60
    run --separate-stderr holdfast show a
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "a: held, 2 waiters  (key hf:{a})" ]]
    [[ "$output" == *"holder  user-1@host-1 prog-1[1]"*"lease left 5"*"token $(redis get 'hf:{a}:fence')"*"id $(hold_id 1)"* ]]
    [[ "$output" == *"queue  1  user-3@host-3 prog-3[3]"*"waits 1m"*"2  $(hold_id 2)"*"waits "* ]]
    run --separate-stderr holdfast show a --json
    [ "$(of_json '[w["id"][-1] for w in d["lock"]["waiters"]]' <<<"$output")" = "['3', '2']" ]
    [ "$(of_json '60000 <= d["lock"]["oldest_wait_ms"] < 120000' <<<"$output")" = True ]
    [ "$(of_json '2000 <= d["lock"]["holders"][0]["held_ms"] < 60000' <<<"$output")" = True ]
    [ "$(of_json 'd["lock"]["waiters"][1]["client"]' <<<"$output")" = None ]
}

@test "Show.OfAFreeLockIsExitOne" {
    run --separate-stderr holdfast show a
    [ "$status" -eq 1 ]
    [[ "$output" == "a: free"* ]]
}

@test "Show.ReadersAndTheirQueueAreTold" {
    start_local_server
    introduce 1
    read_by a 1 2
    # A reader of ours without a lease is dead; a foreign one lives by the key.
    redis hset 'hf:{a}' "r:$(hold_id 9)" 1 r:goroutine-7 2 >/dev/null
    waited_for_by 4 a 3 w
    waited_for_by 5 a 2 r
    local upgrader
    upgrader=$(hold_id 1)
    redis zadd 'hf:{a}:queue' "$(python3 -c "print($(server_us) - 1000000 - 2**53)")" "$upgrader" >/dev/null
    redis hset 'hf:{a}:waiters' "$upgrader" "30000 10000 $(server_us) 0 u hf:wake:${upgrader%%.*}" >/dev/null
    run --separate-stderr holdfast show a --json
    [ "$(of_json 'd["lock"]["mode"]' <<<"$output")" = read ]
    [ "$(of_json 'sorted((h["id"][-1], h["mode"], h["foreign"], h["count"]) for h in d["lock"]["holders"])' <<<"$output")" = \
        "[('1', 'read', False, 1), ('2', 'read', False, 1), ('7', 'read', True, 2)]" ]
    [ "$(of_json '[(w["id"][-1], w["wants"]) for w in d["lock"]["waiters"]]' <<<"$output")" = \
        "[('1', 'upgrade'), ('4', 'write'), ('5', 'read')]" ]
    [ "$(of_json 'd["lock"]["waiters"][0]["waited_ms"] < 100000' <<<"$output")" = True ]
    run --separate-stderr holdfast show a
    [[ "${lines[0]}" == "a: held for reading, 3 waiters"* ]]
    [[ "$output" == *goroutine-7*"another program"* ]]
    [[ "$output" == *"to upgrade"*"to write"*"to read"* ]]
}

@test "Show.WriterWhoAlsoReadsIsOneHolder" {
    start_local_server
    redis hset 'hf:{a}' mode write writer "$(hold_id 1)" wcount 2 rcount 1 "r:$(hold_id 1)" 1 >/dev/null
    redis zadd 'hf:{a}:leases' "$(($(server_us) / 1000 + 30000))" "$(hold_id 1)" >/dev/null
    redis hset 'hf:{a}:grants' "$(hold_id 1)" "b 12345" >/dev/null
    run --separate-stderr holdfast show a --json
    [ "$(of_json 'd["lock"]["mode"]' <<<"$output")" = write ]
    [ "$(of_json '[(h["mode"], h["count"], h["token"]) for h in d["lock"]["holders"]]' <<<"$output")" = "[('both', 3, 12345)]" ]
}

@test "Show.ForeignHolderWithoutATimeLimitIsTold" {
    start_local_server
    redis set cron 'worker-3' >/dev/null
    run --separate-stderr holdfast show --keys raw cron
    [[ "$output" == *"worker-3 (another program)"*"without a time limit"* ]]
    run --separate-stderr holdfast show --keys raw cron --json
    [ "$(of_json 'd["lock"]["holders"][0]["lease_left_ms"]' <<<"$output")" = None ]
    [ "$(of_json 'd["lock"]["holders"][0]["foreign"]' <<<"$output")" = True ]
}

@test "Ls.AKeptLockIsTold" {  # R50
    start_local_server
    introduce 7
    kept_by 7 a
    held_by 1 b
    run --separate-stderr holdfast ls
    [[ "${lines[1]}" == a*"exclusive, kept"*user-7@host-7* ]]
    [[ "${lines[2]}" == b*exclusive* && "${lines[2]}" != *kept* ]]
    run --separate-stderr holdfast ls --json
    [ "$(of_json '[l["holders"][0]["kept"] for l in d["locks"]]' <<<"$output")" = "[True, False]" ]
}

@test "Show.AKeptLockIsTold" {  # R50
    start_local_server
    kept_by 7 a
    redis set 'hf:{a}:fence' 1795007593185230 px 60000 >/dev/null
    run --separate-stderr holdfast show a
    [[ "$output" == *"token 1795007593185230"*kept* ]]
    [[ "$output" != *since* ]]
    run --separate-stderr holdfast show a --json
    [ "$(of_json '[(h["kept"], h["since"], h["foreign"]) for h in d["lock"]["holders"]]' <<<"$output")" = "[(True, None, False)]" ]
    held_by 1 b
    run --separate-stderr holdfast show b --json
    [ "$(of_json 'd["lock"]["holders"][0]["kept"]' <<<"$output")" = False ]
}

@test "Show.WaiterThatIsNotHeardOfIsMarked" {
    start_local_server
    held_by 1 a
    waited_for_by 2 a 100
    redis hset 'hf:{a}:waiters' "$(hold_id 2)" "30000 10000 $(($(server_us) - 50000000)) 0 w hf:wake:x" >/dev/null
    run --separate-stderr holdfast show a --json
    [ "$(of_json 'd["lock"]["waiters"][0]["silent"]' <<<"$output")" = True ]
    run --separate-stderr holdfast show a
    [[ "$output" == *"not heard of"* ]]
}

@test "Show.OfAKeyThatIsNoLockSaysSo" {
    start_local_server
    redis lpush 'hf:{a}' x >/dev/null
    run --separate-stderr holdfast show a
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"hf:{a}"* ]]
}

@test "Show.MakesNoSenseOfNonsense" {
    start_local_server
    redis set 'hf:{a}' x px 60000 >/dev/null
    redis set 'hf:{a}:fence' 99999999999999999999 >/dev/null
    redis zadd 'hf:{a}:queue' inf x -- 1e300 y 2>/dev/null >/dev/null || redis zadd 'hf:{a}:queue' inf x >/dev/null
    redis hset 'hf:{a}:waiters' x 'what is this' >/dev/null
    run --separate-stderr holdfast show a --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'd["lock"]["last_token"]' <<<"$output")" = None ]
}

@test "Look.ColourOnlyOnATerminalAndNeverWithNoColor" {
    start_local_server
    held_by 1 a
    run --separate-stderr holdfast show a
    [[ "$output" != *$'\e'* ]]
    TERM=xterm run script -qec "'$HOLDFAST_BIN' show a" /dev/null
    [[ "$output" == *$'\e['* ]]
    TERM=xterm NO_COLOR=1 run script -qec "'$HOLDFAST_BIN' show a" /dev/null
    [[ "$output" != *$'\e['* ]]
}

@test "Look.UnreachableServerIs125WithAReason" {
    for words in "ls" "show a" "ls --json" "top --json" "watch a" "release a --force --yes"; do
        run --separate-stderr holdfast $words --url redis://127.0.0.1:1
        [ "$status" -eq 125 ]
        [[ "$stderr" == *"127.0.0.1:1"* ]]
        [ -z "$output" ]
    done
}

@test "Look.StartsNoServer" {
    run holdfast ls
    [ "$status" -eq 0 ]
    [[ "$output" == *"the local server does not run, so nothing is locked there"* ]]
    run --separate-stderr holdfast ls --json
    [ "$(of_json 'd["locks"]' <<<"$output")" = "[]" ]
    run holdfast show a
    [ "$status" -eq 1 ]
    [[ "$output" == *"a: free"* ]]
    run --separate-stderr holdfast show --json a
    [ "$(of_json 'd["lock"]["mode"]' <<<"$output")" = free ]
    [ ! -e "$HOLDFAST_HOME/redis.sock" ]
    holdfast run a -- true
    run holdfast show a
    [[ "$output" != *"does not run"* ]]
}

@test "Look.OutputThatCannotBeWrittenIsAFailure" {
    start_local_server
    held_by 1 a
    local command
    for command in ls "ls --json" "show a" doctor metrics "run --help" "watch --count 1 a"; do
        run bash -c "\"\$BIN\" $command 2>&1 >/dev/full"
        echo "$command: $status: $output"
        [ "$status" -eq 125 ]
        [[ "$output" == *"could not be written"* ]]
    done
    # A reader that has seen enough is no failure.
    run bash -c 'set -o pipefail; "$BIN" watch --interval 10ms a | head -n 1'
    [[ "$output" == *held* ]]
}

@test "Notes.AreShownByLsShowAndJsonAndRemovedWithTheHold" { # R54
    hold a --note 'nightly backup' --lease 50s
    holder=$last
    start run -q --note 'waiting report' a -- true
    wait_until someone_waits_for a
    run --separate-stderr holdfast ls
    [[ "${lines[1]}" == *"holdfast:sh[$holder] "*" nightly backup"* ]]
    run --separate-stderr holdfast show a
    [[ "$output" == *"note: nightly backup"* && "$output" == *"waiting report"* ]]
    run --separate-stderr holdfast show a --json
    [ "$(of_json 'd["lock"]["holders"][0]["note"]' <<<"$output")" = 'nightly backup' ]
    [ "$(of_json 'd["lock"]["waiters"][0]["note"]' <<<"$output")" = 'waiting report' ]
    run holdfast run --no-wait a -- true
    [ "$status" -eq 1 ]
    [[ "$output" == *"of its lease left; note: nightly backup"* ]]
    let_go a
    finish "$holder"
    finish "$last"
    [ "$(redis exists 'hf:{a}:notes')" = 0 ]
}

@test "Notes.OfRunAreItsCommandWithoutSecretsUnlessToldOtherwise" { # R54
    holdfast run a -- sh -c 'TOKEN=s3cret "$BIN" show a --json >"$0"' "$BOX/seen"
    [[ "$(of_json 'd["lock"]["holders"][0]["note"]' <"$BOX/seen")" == "sh -c TOKEN=*** \"\$BIN\" show a --json"* ]]
    run ! grep -q s3cret "$BOX/seen"
    holdfast run --note '' a -- sh -c '"$BIN" show a --json >"$0"' "$BOX/seen"
    [ "$(of_json '"note" in d["lock"]["holders"][0]' <"$BOX/seen")" = False ]
    run holdfast run --note x --slots 2 pool -- true
    [ "$status" -eq 125 ]
    run holdfast run --note x --keys raw raw -- true
    [ "$status" -eq 125 ]
    holdfast run --slots 2 pool -- true
    holdfast run --keys raw raw -- true
}
