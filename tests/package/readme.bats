# The READMEs: every block of code in them is run, as a reader would run it.
load package

export HOLDFAST_BIN=$HOLDFAST_BUILD/bin/holdfast
readme=$BATS_TEST_DIRNAME/readme.py
languages="README.md README.zh-CN.md"

# Runs every block of a page in a tree in which the build is found; $1 is the page.
run_page() {
    export HOLDFAST_TEST_URL=unix://$HOLDFAST_HOME/redis.sock HOME=$BOX/reader
    mkdir -p "$HOME" "$BOX/tree/build"
    ln -s "$HOLDFAST_BUILD" "$BOX/tree/build/release"
    python3 "$readme" script "$HOLDFAST_TREE/$1" >"$BOX/script"
    cd "$BOX/tree"
    run bash "$BOX/script"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^done with line' <<<"$output")" -eq "$(python3 "$readme" list "$HOLDFAST_TREE/$1" | wc -l)" ]
    # By what was installed, not by what was built.
    [ "$(cd "$HOME/.local/bin" && ls)" = holdfast ]
}

@test "Readme.RunsFromTopToBottom" {
    start_local_server
    start_servers
    export HOLDFAST_TEST_SERVERS=$servers
    # The text has ten seconds for the longest lease, and a server that is younger grants no locks.
    for i in 1 2 3; do wait_until is_older_than $i 10; done
    run_page README.md
    [ "$(grep -c '^done with line' <<<"$output")" -gt 5 ]
}

@test "QuickStart.RunsFromTopToBottom" {
    start_local_server
    run_page docs/quick-start.md
    [[ "$output" == *"my turn"* ]]
    [[ "$output" == *"sell with token "* ]]
}

@test "Readme.HasTheSameCodeInBothLanguages" {
    local page
    for page in README.md:README.zh-CN.md docs/quick-start.md:docs/zh/quick-start.md; do
        diff <(python3 "$readme" list "$HOLDFAST_TREE/${page%:*}") <(python3 "$readme" list "$HOLDFAST_TREE/${page#*:}")
    done
}

@test "Readme.HasTheSameTableInBothLanguages" {
    # As many rows, with as many columns.
    shape() { grep '^|' "$HOLDFAST_TREE/$1" | tr -cd '|\n'; }
    diff <(shape README.md) <(shape README.zh-CN.md)
}

@test "Readme.NamesOnlyCommandsAndFilesThatAreThere" {
    local page word
    for page in $languages; do
        for word in $(grep -o '`\./dev [a-z]*`' "$HOLDFAST_TREE/$page" | tr -d '`' | cut -d ' ' -f 2 | sort -u); do
            "$HOLDFAST_TREE/dev" help | grep -q "^\./dev $word " || { echo "$page: ./dev $word" && false; }
        done
        for word in $(grep -o '](\([^)#:]*\))' "$HOLDFAST_TREE/$page" | tr -d ']()' | sort -u); do
            [ -e "$HOLDFAST_TREE/$word" ] || { echo "$page: $word" && false; }
        done
    done
}

@test "Readme.BlockThatNobodyRunsIsAnError" {
    for block in $'```text\nhello\n```' $'```\nhello\n```' $'\n    holdfast ls\n' $'```cpp\nint main() {}\n```' $'```sh\nnever closed'; do
        printf 'Text.\n\n%s\n' "$block" >"$BOX/page.md"
        run python3 "$readme" script "$BOX/page.md"
        echo "$block: $output"
        [ "$status" -ne 0 ]
        [[ "$output" == *"page.md:"* ]]
    done
}

@test "Readme.BlockThatFailsIsNoticed" {
    printf '```sh\nfalse\n```\n' >"$BOX/page.md"
    python3 "$readme" script "$BOX/page.md" >"$BOX/script"
    run bash "$BOX/script"
    [ "$status" -ne 0 ]
    [[ "$output" != *"done with"* ]]
}

@test "Docs.NameOnlyOptionsThatTheCommandHas" {
    local line words sub option seen=0
    while read -r line; do
        line=${line%% -- *}
        read -ra words <<<"$line"
        sub=("${words[1]}")
        [ "${words[1]}" != server ] || sub+=("${words[2]}")
        [ -e "$BOX/${sub[*]}" ] || holdfast "${sub[@]}" --help >"$BOX/${sub[*]}"
        for option in $(grep -oE -- ' --[a-z][a-z-]+' <<<"$line"); do
            seen=$((seen + 1))
            grep -qE -- "$option\b" "$BOX/${sub[*]}" || { echo "holdfast ${sub[*]} has no $option: $line" && false; }
        done
    done < <(grep -ohE 'holdfast (run|lock|unlock|elect|wait|web|server|ls|show|top|watch|release|metrics|doctor|bench) [^`|]*' \
        "$HOLDFAST_TREE"/README*.md "$HOLDFAST_TREE"/docs/*.md "$HOLDFAST_TREE"/docs/*/*.md)
    [ "$seen" -gt 20 ]
}
