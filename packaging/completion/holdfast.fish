# fish completion for holdfast(1).
#
# Subcommands and options are read from holdfast's own --help, so that they are never out of date; names of locks come
# from the server. Nothing is started for that: without a server there are no names.

# The words before the cursor that are no options: holdfast, the subcommand, what follows.
function __holdfast_words
    string match -v -- '-*' (commandline -opc)
end

function __holdfast_subcommands
    set -l program (commandline -opc)[1]
    $program $argv --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z-]*\)  *\(.*\)/\1\t\2/p'
end

# "--option<tab>what it does" of the subcommand on the line.
function __holdfast_options
    set -l words (__holdfast_words)
    set -l chain $words[2]
    test "$chain" = server; and set chain server $words[3]
    $words[1] $chain --help 2>/dev/null | sed -n 's/^  \(-[^ ]*\) \{0,1\}\([^ ]*\)\( \.\.\.\)\{0,1\}  *\(.*\)/\1\t\4/p' |
        while read -l -d \t names text
            for name in (string split , -- $names)
                printf '%s\t%s\n' $name $text
            end
        end
end

function __holdfast_names
    set -l words (commandline -opc)
    set -l where
    for at in (seq (count $words)) # --url may be there several times
        contains -- $words[$at] --url --prefix; and set -a where $words[$at] $words[(math $at + 1)]
    end
    contains -- --local $words; and set -a where --local
    string match -qr "^(run|lock)\$" -- $words; and set -a where --all
    $words[1] ls --names $where 2>/dev/null </dev/null
end

function __holdfast_wants_subcommand
    test (count (__holdfast_words)) -eq 1
end

function __holdfast_wants_server_word
    set -l words (__holdfast_words)
    test (count $words) -eq 2 -a "$words[2]" = server
end

function __holdfast_wants_name
    set -l words (__holdfast_words)
    contains -- -- (commandline -opc); and return 1
    contains -- "$words[2]" run lock unlock ls show watch release
end

function __holdfast_wants_option
    not __holdfast_wants_subcommand; and not contains -- -- (commandline -opc)
    and string match -q -- '-*' (commandline -ct)
end

function __holdfast_wants_command
    contains -- -- (commandline -opc)
end

complete -c holdfast -f
complete -c holdfast -n __holdfast_wants_subcommand -a '(__holdfast_subcommands)'
complete -c holdfast -n __holdfast_wants_server_word -a '(__holdfast_subcommands server)'
complete -c holdfast -n __holdfast_wants_name -a '(__holdfast_names)'
complete -c holdfast -n __holdfast_wants_option -a '(__holdfast_options)'
complete -c holdfast -n __holdfast_wants_command -a '(__fish_complete_command)' -F
