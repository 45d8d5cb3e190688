# What the shells offer behind `holdfast`: subcommands, options, and the names of locks from the server.
load common

completions=$BATS_TEST_DIRNAME/../../packaging/completion

# complete_bash LINE: what bash offers at its end, sorted, in one line.
complete_bash() {
    PATH=$BOX/bin:$PATH bash --norc -c '
        source "$1/holdfast.bash"
        COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=($2)
        _holdfast
        printf "%s\n" "${COMPREPLY[@]}"' completion "$completions" "$1" | sort | xargs
}
complete_fish() {
    PATH=$BOX/bin:$PATH HOME=$BOX fish --no-config -c "source '$completions/holdfast.fish'; complete -C '$1'" | cut -f1 | sort | xargs
}
a_server_with_locks() {
    mkdir "$BOX/bin"
    ln -s "$HOLDFAST_BIN" "$BOX/bin/holdfast"
    start_local_server
    held_by 1 stock:1
    held_by 2 stock:22
    held_by 3 other
    redis set 'hf:{stock:free}:fence' 7 px 3600000 >/dev/null
}

@test "Completion.BashOffersSubcommandsAndOptions" {
    a_server_with_locks
    [ "$(complete_bash 'holdfast ')" = "--help --version $("$HOLDFAST_BIN" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort | xargs)" ]
    [ "$(complete_bash 'holdfast re')" = release ]
    [ "$(complete_bash 'holdfast server st')" = "start status stop" ]
    [ "$(complete_bash 'holdfast run --no-')" = --no-wait ]
    [ "$(complete_bash 'holdfast --url redis://x --prefix p: run --no-')" = --no-wait ]
    [ "$(complete_bash 'holdfast server stop --f')" = --force ]
    [ "$(complete_bash 'holdfast show --keys ')" = "raw tagged" ]
    [ "$(complete_bash 'holdfast run --on-lost ')" = "kill warn" ]
    [ "$(complete_bash 'holdfast run --prefer ')" = "arrival readers writers" ]
    [ "$(complete_bash 'holdfast run --sh')" = "--shared --shell" ]
    [ "$(complete_bash 'holdfast run --lease ')" = "" ]
    [ "$(complete_bash 'holdfast run --ur')" = --url ] # may be repeated, which --help shows by dots
    [ "$(complete_bash 'holdfast bench --work')" = --workload ]
    [ "$(complete_bash 'holdfast run --url ')" = "" ]
}

@test "Completion.BashOffersNamesFromTheServer" {
    a_server_with_locks
    [ "$(complete_bash 'holdfast show ')" = "other stock:1 stock:22" ]
    [ "$(complete_bash 'holdfast show --json st')" = "stock:1 stock:22" ]
    # Behind a colon the shell has cut the word.
    [ "$(complete_bash 'holdfast show stock:')" = "1 22" ]
    [ "$(complete_bash 'holdfast run stock:')" = "1 22 free" ]
    [ "$(complete_bash 'holdfast lock stock:')" = "1 22 free" ]
    [ "$(complete_bash 'holdfast release --force --url redis://127.0.0.1:1 ')" = "" ]
    [[ " $(complete_bash 'holdfast run a -- tru') " == *" true "* ]]
}

@test "Completion.OffersTheNamesOfAllServersThatAreNamed" {
    mkdir "$BOX/bin"
    ln -s "$HOLDFAST_BIN" "$BOX/bin/holdfast"
    start_servers
    on 1 set 'hf:{one}' "$(hold_id 1)" px 60000 >/dev/null
    on 3 set 'hf:{three}' "$(hold_id 1)" px 60000 >/dev/null
    local words="--url $(url 1) --url=$(url 2) --url $(url 3)"
    [ "$(complete_bash "holdfast show $words ")" = "one three" ]
    command -v fish >/dev/null || return 0
    words="--url $(url 1) --url $(url 2) --url $(url 3)"
    [ "$(complete_fish "holdfast show $words ")" = "one three" ]
}

@test "Completion.StartsNoServer" {
    mkdir "$BOX/bin"
    ln -s "$HOLDFAST_BIN" "$BOX/bin/holdfast"
    [ "$(complete_bash 'holdfast show ')" = "" ]
    [ ! -e "$HOLDFAST_HOME/redis.sock" ]
}

@test "Completion.FishOffersTheSame" {
    command -v fish >/dev/null || skip "fish is not installed"
    a_server_with_locks
    [ "$(complete_fish 'holdfast re')" = release ]
    [ "$(complete_fish 'holdfast server st')" = "start status stop" ]
    [ "$(complete_fish 'holdfast run --no')" = --no-wait ]
    [ "$(complete_fish 'holdfast show ')" = "other stock:1 stock:22" ]
    [ "$(complete_fish 'holdfast run stock:')" = "stock:1 stock:22 stock:free" ]
}

@test "Completion.ZshOffersTheSame" {
    command -v zsh >/dev/null || skip "zsh is not installed"
    a_server_with_locks
    cat >"$BOX/.zshrc" <<TEXT
PROMPT='prompt> '
fpath=('$completions' \$fpath)
autoload -U compinit
compinit -u -d '$BOX/zcompdump'
LISTMAX=1000
TEXT
    terminal -f /dev/null new-session -d -s t -x 120 -y 40 \
        "env PATH='$BOX/bin:$PATH' HOLDFAST_HOME='$HOLDFAST_HOME' ZDOTDIR='$BOX' zsh -i" 3>&-
    terminal display-message -p '#{pid}' >"$BOX/tmux.pid"
    wait_until shows 'prompt>'
    terminal send-keys -t t 'holdfast rel' Tab
    wait_until shows 'prompt> holdfast release'
    terminal send-keys -t t 'st' Tab
    wait_until shows 'prompt> holdfast release stock:'
    terminal send-keys -t t Tab # the second one lists
    wait_until shows 'stock:1 *stock:22'
    terminal send-keys -t t C-u 'holdfast run --no-w' Tab
    wait_until shows 'prompt> holdfast run --no-wait'
    terminal send-keys -t t C-u 'holdfast server sta' Tab
    wait_until shows '^start '
    wait_until shows '^status '
    start_servers
    on 1 set 'hf:{first}' "$(hold_id 1)" px 60000 >/dev/null
    on 2 set 'hf:{second}' "$(hold_id 1)" px 60000 >/dev/null
    terminal send-keys -t t C-u "holdfast show --url '$(url 1)' fi" Tab
    wait_until shows "' first"
    terminal send-keys -t t C-u "holdfast show --url '$(url 1)' --url '$(url 2)' sec" Tab
    wait_until shows "' second"
}
