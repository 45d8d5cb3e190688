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
    [ "$(grep -c 'started a local server' "$BOX/out")" -eq 1 ]
    [ "$(grep -c 'Redis is starting' "$HOLDFAST_HOME/redis.log")" -eq 1 ]
    [ "$(servers_here)" -eq 1 ]
    is_alive "$(server_pid)"
}

@test "Server.SaysOnceThatLocksHoldOnThisMachineOnly" {
    run holdfast run a -- true
    [[ "$output" == *"this machine only"* ]]
    run holdfast run a -- true
    [ -z "$output" ]
    holdfast server stop
    run holdfast run -q a -- true
    [ -z "$output" ]
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
