# bash completion for holdfast(1).
#
# Subcommands and options are read from holdfast's own --help, so that they are never out of date; names of locks come
# from the server. Nothing is started for that: without a server there are no names.

# "option value-or-nothing" of every option of a subcommand; a short and a long form are two lines.
_holdfast_options() {
    "$1" ${2:+"$2"} ${3:+"$3"} --help 2>/dev/null | sed -n 's/^  \(-[^ ]*\) \{0,1\}\([^ ]*\)\( \.\.\.\)\{0,1\}  .*/\1 \2/p' |
        while read -r names value; do
            for name in ${names//,/ }; do echo "$name $value"; done
        done
}

_holdfast_subcommands() {
    "$1" ${2:+"$2"} --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
}

_holdfast() {
    # Words as the shell has them are cut at every ':', and names of locks have many.
    local line=${COMP_LINE:0:COMP_POINT} program=${COMP_WORDS[0]} cur= previous= i
    local -a words
    read -r -a words <<<"$line"
    if [[ $line != *[[:space:]] ]]; then
        cur=${words[-1]}
        unset 'words[-1]'
    fi
    previous=${words[-1]}
    COMPREPLY=()

    # Behind the dashes stands somebody else's command.
    for ((i = 1; i < ${#words[@]}; ++i)); do
        [[ ${words[i]} == -- ]] || continue
        if ((i == ${#words[@]} - 1)); then
            COMPREPLY=($(compgen -c -- "$cur"))
        else
            compopt -o default 2>/dev/null
        fi
        return
    done

    local subcommand= second= prefix= wants_value= name value
    local -a options=() positionals=() servers=()
    for ((i = 1; i < ${#words[@]}; ++i)); do
        case ${words[i]} in
            --url) servers+=(--url "${words[i + 1]-}") ;;
            --url=*) servers+=("${words[i]}") ;;
            --local) servers+=(--local) ;;
            --prefix) prefix=${words[i + 1]-} ;;
        esac
        # The value of an option that stands before the subcommand.
        [[ -z $subcommand && $i -gt 1 && ${words[i - 1]} == @(--url|--prefix|--max-lease) ]] && continue
        if [[ -z $subcommand && ${words[i]} != -* ]]; then
            subcommand=${words[i]}
        elif [[ $subcommand == server && -z $second && ${words[i]} != -* ]]; then
            second=${words[i]}
        fi
    done
    if [[ -z $subcommand ]]; then
        COMPREPLY=($(compgen -W "$(_holdfast_subcommands "$program") --help --version" -- "$cur"))
        return
    fi
    if [[ $subcommand == server && -z $second ]]; then
        COMPREPLY=($(compgen -W "$(_holdfast_subcommands "$program" server) --help" -- "$cur"))
        return
    fi

    while read -r name value; do
        options+=("$name")
        [[ $name == "$previous" ]] && wants_value=$value
    done < <(_holdfast_options "$program" "$subcommand" "$second")
    if [[ -n $wants_value ]]; then
        case $previous in
            --keys) COMPREPLY=($(compgen -W 'tagged raw' -- "$cur")) ;;
            *) [[ $wants_value == *'|'* ]] && COMPREPLY=($(compgen -W "${wants_value//|/ }" -- "$cur")) ;;
        esac
        return
    fi
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "${options[*]}" -- "$cur"))
        return
    fi
    case $subcommand in
        run | lock | unlock | ls | show | watch | release)
            local -a all=()
            [[ $subcommand == @(run|lock) ]] && all=(--all)
            while IFS= read -r name; do
                [[ $name == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
            done < <("$program" ls --names "${all[@]}" "${servers[@]}" ${prefix:+--prefix "$prefix"} 2>/dev/null </dev/null)
            # What the shell takes for words before this one is there already.
            if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
                local there=${cur%"${cur##*:}"}
                for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$there"}; done
            fi
            ;;
    esac
}
complete -F _holdfast holdfast
