# The configuration: what is set once for all commands.
load common

settings() {
    export HOLDFAST_CONFIG=$BOX/holdfast.toml
    unset HOLDFAST_URL
    cat >"$HOLDFAST_CONFIG"
}

@test "Config.UrlPrefixAndMaxLeaseAreThoseOfAllCommands" {
    start_named_server 'save ""'
    settings <<END
# for all on this machine
url = "$HOLDFAST_URL"   # one server
prefix = 'shop:'
max-lease = "2h"
END
    run holdfast run --lease 1h a -- redis-cli -s "$BOX/named/redis.sock" exists 'shop:{a}'
    [ "$status" -eq 0 ]
    [ "$output" = 1 ]
    named_redis set 'shop:{b}' "$(hold_id 1)" px 60000
    [[ "$(holdfast ls --names)" == b ]]
    # What is said at the command goes first, then the environment.
    [ "$(holdfast ls --names --prefix p:)" = "" ]
    run holdfast run --lease 1h --max-lease 1m a -- true
    [ "$status" -eq 125 ]
    HOLDFAST_URL=local run holdfast ls
    [[ "$output" == *"local server does not run"* ]]
}

@test "Config.SeveralUrlsAreAMajority" {
    start_servers
    settings <<END
url = ["$(url 1)", "$(url 2)", "$(url 3)"]
END
    held_by_majority() { on 1 set 'hf:{a}' "$(hold_id 1)" px 60000 && on 2 set 'hf:{a}' "$(hold_id 1)" px 60000; }
    held_by_majority
    [[ "$(holdfast ls)" == *"2 of 3"* ]]
}

@test "Config.OfTheUserGoesBeforeThatOfTheMachine" {
    start_named_server 'save ""'
    unset HOLDFAST_CONFIG
    export XDG_CONFIG_HOME=$BOX/config
    mkdir "$XDG_CONFIG_HOME"
    echo "url = '$HOLDFAST_URL'" >"$XDG_CONFIG_HOME/holdfast.toml"
    unset HOLDFAST_URL
    [[ "$(holdfast ls --json)" == *"$BOX/named/redis.sock"* ]]
    unset XDG_CONFIG_HOME
    mkdir -p "$BOX/.config"
    mv "$BOX/config/holdfast.toml" "$BOX/.config/"
    [[ "$(HOME=$BOX holdfast ls --json)" == *"$BOX/named/redis.sock"* ]]
}

@test "Config.MistakesAreNamedWithTheirLine" {
    local line
    while read -r line; do
        settings <<<$'\n'"$line"
        run holdfast ls
        echo "$line: $output"
        [ "$status" -eq 125 ]
        [[ "$output" == *"$HOLDFAST_CONFIG:2: "* ]]
        [[ "$output" != *geheim* ]]
    done <<'END'
url = redis://x
url = "redis://:geheim@x
url = ""
url = []
ulr = "redis://x"
[server]
prefix "x"
max-lease = "1m" "2m"
prefix = "\q"
END
    HOLDFAST_CONFIG=$BOX/nowhere run holdfast ls
    [ "$status" -eq 125 ]
    [[ "$output" == *"does not exist"* ]]
    holdfast --help >/dev/null # which needs none of it
}

@test "Config.PasswordThatOthersCanReadIsRefused" {
    settings <<<'url = "redis://:geheim@127.0.0.1:1"'
    chmod 644 "$HOLDFAST_CONFIG"
    run holdfast ls
    [ "$status" -eq 125 ]
    [[ "$output" == *"chmod 600"* ]]
    [[ "$output" != *geheim* ]]
    chmod 600 "$HOLDFAST_CONFIG"
    run holdfast ls
    [[ "$output" == *"nothing listens"* ]]
}
