# The local server.
load common

servers_here() { ps -eo args | grep -c "^redis-server.*$HOLDFAST_HOME/redis.sock"; }

@test "Server.IsStartedOnceHoweverManyComeFirst" {
    local pids=()
    for ((i = 0; i < 10; ++i)); do
        start run "name$i" -- true
        pids+=("$last")
    done
    for pid in "${pids[@]}"; do
        finish "$pid"
        [ "$status" -eq 0 ] || { cat "$BOX/out"; false; }
    done
    [ "$(grep -c 'Redis is starting' "$HOLDFAST_HOME/redis.log")" -eq 1 ]
    [ "$(servers_here)" -eq 1 ]
    is_alive "$(server_pid)"
}

only_yours='only among your own commands on this machine'

@test "Server.IsAnnouncedByEveryRunThatFallsBackToIt" {
    unset HOLDFAST_URL
    for words in "" "" -q; do # started, running, and told to be quiet
        run --separate-stderr holdfast run $words a -- echo ran
        [ "$status" -eq 0 ]
        [ "$output" = ran ]
        [[ "$stderr" == *"no server is named"*"$only_yours"*--local* ]]
    done
    run --separate-stderr holdfast ls
    [[ "$stderr" == *"$only_yours"* ]]
}

@test "Server.IsNotAnnouncedWhereItWasAskedFor" {
    unset HOLDFAST_URL
    run --separate-stderr holdfast run --local a -- true
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    run --separate-stderr holdfast run --url local a -- true
    [ -z "$stderr" ]
    HOLDFAST_URL=local run --separate-stderr holdfast run a -- true
    [ -z "$stderr" ]
    HOLDFAST_URL=redis://127.0.0.1:1 run --separate-stderr holdfast ls --local
    [ "$status" -eq 0 ]
    [[ "$stderr" != *"$only_yours"* ]]
    # What runs inside is asked for by the same word.
    run --separate-stderr holdfast run --local a -- "$HOLDFAST_BIN" run b -- sh -c 'echo "$HOLDFAST_URL"'
    [ "$output" = local ]
    [ -z "$stderr" ]
    run holdfast run --local --url redis://127.0.0.1:1 a -- true
    [ "$status" -eq 125 ]
}

@test "Server.AnEmptyOrBlankUrlIsAnErrorAndNothingRuns" {
    for words in "" " " $'\t \n'; do
        HOLDFAST_URL=$words run holdfast run a -- touch "$BOX/ran"
        [ "$status" -eq 125 ]
        [[ "$output" == *"HOLDFAST_URL is set, but names no server"* ]]
        HOLDFAST_URL=local run holdfast run --url "$words" a -- touch "$BOX/ran"
        [ "$status" -eq 125 ]
        [[ "$output" == *"--url is empty"* ]]
    done
    HOLDFAST_URL= run holdfast ls --names
    [ "$status" -eq 125 ]
    [ ! -e "$BOX/ran" ]
    [ ! -e "$HOLDFAST_HOME" ]
}

@test "Server.AMisspeltVariableIsNamed" {
    unset HOLDFAST_URL
    HOLDFAST_URLS=redis://127.0.0.1:1 run --separate-stderr holdfast run -q a -- true
    [ "$status" -eq 0 ]
    [[ "$stderr" == *"HOLDFAST_URLS"*"no variable of holdfast"*"$only_yours"* ]]
    [[ "$stderr" != *127.0.0.1* ]] # its value may be a secret
    export HOLDFAST_URL=local
    HOLDFAST_MAXLEASE=5s run --separate-stderr holdfast run a -- true
    [[ "$stderr" == *"HOLDFAST_MAXLEASE"*"no variable of holdfast"* ]]
    HOLDFAST_MAXLEASE=5s run --separate-stderr holdfast run -q a -- true
    [ -z "$stderr" ]
    # Those that a run sets for its command are known.
    run --separate-stderr holdfast run a -- "$HOLDFAST_BIN" run b -- true
    [ -z "$stderr" ]
}

# The server lives on without its files; its pid is where teardown finds it.
remove_files_of_the_server() {
    cp "$HOLDFAST_HOME/redis.pid" "$BOX/first.pid"
    rm -rf "${HOLDFAST_HOME:?}"
}

@test "Server.WhoseFilesWereRemovedIsNotJoinedByASecondOne" {
    start_local_server
    remove_files_of_the_server
    run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"still runs"*"pid $(cat "$BOX/first.pid")"*"holdfast server stop"* ]]
    [ ! -e "$BOX/ran" ]
    [ "$(servers_here)" -eq 1 ]
    run holdfast server status
    [ "$status" -eq 1 ]
    [[ "$output" == *"pid $(cat "$BOX/first.pid")"* ]]
    # Nobody knows what is held there, so it is not stopped unasked.
    run holdfast server stop </dev/null
    [ "$status" -eq 1 ]
    is_alive "$(cat "$BOX/first.pid")"
    run holdfast server stop --force
    [ "$status" -eq 0 ]
    wait_until is_gone "$(cat "$BOX/first.pid")"
    holdfast run a -- touch "$BOX/ran"
    [ -e "$BOX/ran" ]
}

@test "Server.WhoseSocketWasRemovedIsNotJoinedByASecondOne" {
    start_local_server
    rm "$HOLDFAST_HOME/redis.sock"
    run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [ "$(servers_here)" -eq 1 ]
}

@test "Server.WhoseFilesWereRemovedIsKnownByEverySpellingOfItsDirectory" {
    start_local_server
    remove_files_of_the_server
    ln -s "$BOX" "$BOX/link"
    local home
    for home in "$HOLDFAST_HOME/" "$BOX/link/$(basename "$HOLDFAST_HOME")" "$BOX/./$(basename "$HOLDFAST_HOME")"; do
        HOLDFAST_HOME=$home run holdfast run a -- touch "$BOX/ran"
        [ "$status" -eq 125 ]
        [[ "$output" == *"still runs"*"pid $(cat "$BOX/first.pid")"* ]]
    done
    [ ! -e "$BOX/ran" ]
    [ "$(servers_here)" -eq 1 ]
}

# Two services with a /tmp of their own have one name for two directories.
@test "Server.ThatSeesOtherFilesIsNotJoinedAndNotKilled" {
    unshare -m true 2>/dev/null || skip "needs the right to make a mount namespace"
    holdfast server start
    local server elsewhere='mount -t tmpfs none "$HOLDFAST_HOME" && chmod 700 "$HOLDFAST_HOME" && exec "$@"'
    server=$(server_pid)
    run unshare -m sh -c "$elsewhere" sh "$HOLDFAST_BIN" run a -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"runs (pid $server) where other files are seen"*HOLDFAST_HOME* ]]
    run unshare -m sh -c "$elsewhere" sh "$HOLDFAST_BIN" server stop --force
    [ "$status" -eq 125 ]
    is_alive "$server"
}

@test "Server.IsKnownByItsPidHoweverOftenItWasLookedFor" {
    holdfast server start
    local server
    server=$(server_pid)
    rm "$HOLDFAST_HOME/redis.sock"
    for ((i = 0; i < 20; ++i)); do holdfast server status >"$BOX/status" || true; done
    grep -q "pid $server" "$BOX/status"
    holdfast server stop --force
    wait_until eval '! is_alive '"$server"
}

@test "Server.OfAnotherDirectoryIsAnotherServer" {
    start_local_server
    remove_files_of_the_server
    HOLDFAST_HOME=$BOX/other run holdfast run a -- echo ran
    cp "$BOX/other/redis.pid" "$BOX/other.pid"
    [ "$status" -eq 0 ]
}

@test "Server.OutlivesWhoStartedItAndItsSession" {
    setsid -w "$HOLDFAST_BIN" run a -- true 3>&-
    is_alive "$(server_pid)"
    [ "$(ps -o sid= -p "$(server_pid)" | tr -d ' ')" != "$(ps -o sid= -p $$ | tr -d ' ')" ]
    run holdfast server status
    [ "$status" -eq 0 ]
}

@test "Server.ListensOnAPrivateSocketOnlyAndKeepsNothingOnDisk" {
    holdfast server start
    [ "$(stat -c %a "$HOLDFAST_HOME")" = 700 ]
    [ "$(stat -c %a "$HOLDFAST_HOME/redis.sock")" = 600 ]
    [ "$(redis config get port | tail -n 1)" = 0 ]
    [ -z "$(redis config get save | tail -n 1)" ]
    [ "$(redis config get appendonly | tail -n 1)" = no ]
    [ "$(redis config get maxmemory-policy | tail -n 1)" = noeviction ]
    holdfast server stop
    [ ! -e "$HOLDFAST_HOME/dump.rdb" ]
}

@test "Server.StartStopAndStatusTellTheTruth" {
    run holdfast server status
    [ "$status" -eq 1 ]
    run holdfast server stop
    [ "$status" -eq 0 ]
    run holdfast server start
    [ "$status" -eq 0 ]
    [[ "$output" == "started: unix://$HOLDFAST_HOME/redis.sock" ]]
    run holdfast server start
    [[ "$output" == "already running: "* ]]
    run holdfast server status
    [ "$status" -eq 0 ]
    [[ "$output" == *"pid $(server_pid)"* ]]
    local pid
    pid=$(server_pid)
    run holdfast server stop
    [ "$status" -eq 0 ]
    wait_until is_gone "$pid"
}

@test "Server.StatusIsThereForPrograms" {
    hold a
    run holdfast server status --json
    [ "$status" -eq 0 ]
    echo "$output" | python3 -c '
import json, os, sys
status = json.load(sys.stdin)
assert status["running"] is True
assert status["held"] == ["hf:{a}"], status
assert status["pid"] == int(open(os.environ["HOLDFAST_HOME"] + "/redis.pid").read())'
    let_go a
    finish "$last"
    holdfast server stop
    run holdfast server status --json
    [ "$status" -eq 1 ]
    echo "$output" | python3 -c 'import json, sys; assert json.load(sys.stdin)["running"] is False'
}

@test "Server.StopIsRefusedWhileALockIsHeld" {
    hold a --on-lost warn
    run holdfast server stop </dev/null
    [ "$status" -eq 1 ]
    [[ "$output" == *"hf:{a}"* ]]
    is_alive "$(server_pid)"
    local pid
    pid=$(server_pid)
    run holdfast server stop --force
    [ "$status" -eq 0 ]
    wait_until is_gone "$pid"
    let_go a
    finish "$last"
}

@test "Server.IsStartedAnewAfterItWasKilled" {
    holdfast run a -- true
    local pid
    pid=$(server_pid)
    kill -KILL "$pid"
    wait_until is_gone "$pid"
    run holdfast run a -- echo again
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = again ]
}

@test "Server.DirectoryThatOthersCanOpenIsRefused" {
    mkdir -m 755 "$HOLDFAST_HOME"
    run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"open to other users"* ]]
    [ ! -e "$BOX/ran" ]
}

@test "Server.DirectoryThatIsALinkIsRefused" {
    mkdir -m 700 "$BOX/elsewhere"
    ln -s "$BOX/elsewhere" "$HOLDFAST_HOME"
    run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [ ! -e "$BOX/ran" ]
    [ -z "$(ls "$BOX/elsewhere")" ]
}

@test "Server.DirectoryOfAnotherUserIsRefused" {
    [ "$(id -u)" -eq 0 ] || skip "only root can give a directory away"
    mkdir -m 700 "$HOLDFAST_HOME"
    chown 12345 "$HOLDFAST_HOME"
    run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"belongs to another user"* ]]
    [ ! -e "$BOX/ran" ]
}

@test "Server.DirectoryTooLongForASocketIsRefused" {
    HOLDFAST_HOME=$BOX/$(printf 'x%.0s' {1..120}) run holdfast run a -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"too long for a socket"* ]]
}

@test "Server.ThatIsNotInstalledIsNamedWithItsPackage" {
    PATH=$BOX run "$HOLDFAST_BIN" run a -- /bin/true
    [ "$status" -eq 125 ]
    [[ "$output" == *"apt-get install redis-server"* ]]
    [[ "$output" == *"HOLDFAST_URL"* ]]
}

@test "Server.ThatDoesNotComeUpIsReportedWithItsLastWords" {
    mkdir -m 700 "$HOLDFAST_HOME" "$HOLDFAST_HOME/redis.sock"
    run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"did not come up"* ]]
    [ ! -e "$BOX/ran" ]
}

@test "Server.UrlStartsItAndIsForOtherPrograms" {
    run holdfast server url
    [ "$status" -eq 0 ]
    [ "$output" = "unix://$HOLDFAST_HOME/redis.sock" ]
    [ "$(redis ping)" = PONG ]
    HOLDFAST_URL=$output run holdfast run -q a -- echo ran
    [ "$output" = ran ]
}

@test "Server.DirectoryThatCannotBeWrittenToIsExplained" {
    # What mkdir and open say of a read-only /tmp they say of /proc, too.
    HOLDFAST_HOME=/proc/holdfast run holdfast run a -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"/proc/holdfast"*"set HOLDFAST_HOME to a directory of your own that can be written to"* ]]
    mkdir -m 700 "$HOLDFAST_HOME" "$HOLDFAST_HOME/turn.lock"
    run holdfast run a -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"cannot write to $HOLDFAST_HOME: "*"set HOLDFAST_HOME to a directory of your own that can be written to"* ]]
}
