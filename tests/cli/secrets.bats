# Passwords: never on a command line, never in a message.
load common

password=s3kr3t-paSS

start_server_with_password() {
    mkdir -m 700 "$BOX/server"
    printf '%s\n' "port 0" "unixsocket $BOX/server/redis.sock" "pidfile $BOX/server.pid" "save \"\"" \
        "requirepass $password" "dir $BOX/server" >"$BOX/server/redis.conf"
    redis-server "$BOX/server/redis.conf" >/dev/null 2>&1 3>&- &
    started+=($!)
    wait_until test -S "$BOX/server/redis.sock"
}

@test "Secrets.PasswordOnTheCommandLineIsRefusedAndNotRepeated" {
    for url in "redis://:$password@127.0.0.1" "redis://user:$password@127.0.0.1:1/3" "unix://:$password@/run/x.sock" \
        "redis://127.0.0.1?password=$password" "redis://:$password@"; do
        run holdfast run --url "$url" a -- touch "$BOX/ran"
        [ "$status" -eq 125 ]
        [[ "$output" != *"$password"* ]]
        [ ! -e "$BOX/ran" ]
    done
    run holdfast run --url "redis://:$password@127.0.0.1" a -- true
    [[ "$output" == *"HOLDFAST_URL"* && "$output" == *"password_file"* ]]
}

@test "Secrets.PasswordInTheWrongPlaceIsNotRepeated" {
    for url in "redis://:$password@127.0.0.1" "redis://user:$password@127.0.0.1:1/3" "redis://:a $password@h" \
        "redis://127.0.0.1?password=$password"; do
        for words in "run|--ulr|$url|a" "$url" "run|--lease|$url|a|--|true" "run|--wait=$url|a|--|true" "ls|--keys|$url" \
            "run|a|$url|--|true" "show|a|--keys|$url" "run|--prefer=$url|a|--|true" "run|a|-q$url|--|true"; do
            IFS='|' read -ra spoken <<<"$words"
            run holdfast "${spoken[@]}"
            [ "$status" -eq 125 ]
            [[ "$output" != *"$password"* ]] || { echo "holdfast ${spoken[*]} told: $output"; false; }
        done
    done
}

@test "Secrets.PasswordOfAUrlWithoutItsKeyInTheConfigurationIsNotRepeated" {
    echo "redis://:$password@127.0.0.1 = \"a\"" >"$BOX/holdfast.toml"
    HOLDFAST_CONFIG=$BOX/holdfast.toml run holdfast ls
    [ "$status" -eq 125 ]
    [[ "$output" == *"there is no such setting"* && "$output" != *"$password"* ]]
}

@test "Secrets.PasswordComesByEnvironmentOrFile" {
    start_server_with_password
    printf '%s' "$password" >"$BOX/password"
    HOLDFAST_URL="unix://:$password@$BOX/server/redis.sock" run holdfast run a -- echo one
    [ "$output" = one ]
    run holdfast run --url "unix://$BOX/server/redis.sock?password_file=$BOX/password" a -- echo two
    [ "$output" = two ]
    MY_SECRET=$password run holdfast run --url "unix://$BOX/server/redis.sock?password_env=MY_SECRET" a -- echo three
    [ "$output" = three ]
    [ ! -e "$HOLDFAST_HOME" ]
}

@test "Secrets.WrongPasswordIsSaidButNotShown" {
    start_server_with_password
    HOLDFAST_URL="unix://:wr0ng-$password@$BOX/server/redis.sock" run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"does not accept this user and password"* ]]
    [[ "$output" != *"wr0ng"* ]]
    HOLDFAST_URL="unix://$BOX/server/redis.sock" run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"wants a password"* ]]
    HOLDFAST_URL="redis://:$password" run holdfast run a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" != *"$password"* ]]
    [ ! -e "$BOX/ran" ]
}

@test "Secrets.NoProcessShowsThePassword" {
    start_server_with_password
    export HOLDFAST_URL="unix://:$password@$BOX/server/redis.sock"
    hold a
    run ps -eo args
    [[ "$output" != *"$password"* ]]
    # What the command learns about its lock does not hold it either; only HOLDFAST_URL itself does.
    run holdfast run b -- sh -c 'echo "$HOLDFAST_HELD $HOLDFAST_NAME $HOLDFAST_TOKEN"'
    [[ "$output" != *"$password"* ]]
    let_go a
    finish "$last"
}
