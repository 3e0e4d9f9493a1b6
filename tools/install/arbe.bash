# Completion of arbe for bash. What there is to complete is read from the program's own help, so that it never differs.

# _arbe_help COMMAND...: the help of a command.
_arbe_help() {
    "$@" --help 2>/dev/null
}

# The commands or tools that the help of a command lists: the words that come behind its own.
_arbe_words() {
    local IFS=' '
    _arbe_help "$@" | sed -n -e "s/^  arbe${2:+ ${*:2}} \([a-z][a-z-]*\)\( .*\)\{0,1\}$/\1/p" -e 's/^  \([a-z][a-z0-9-]*\)  *[a-z].*/\1/p' | sort -u
}

# The flags of a help text.
_arbe_flags() {
    sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'
}

# What the value of flag $1 looks like in a help text: its hint.
_arbe_hint() {
    sed -n "s/^  $1 \([A-Za-z0-9|:*-]*\).*/\1/p"
}

# The sections of one of the user's files: the profiles of `arbe stream`, the hosts of `arbe t3`.
_arbe_sections() {
    sed -n 's/^ *\[ *\([^]]*[^] ]\) *\] *$/\1/p' "${1:-${XDG_CONFIG_HOME:-$HOME/.config}/arbe/$2}" 2>/dev/null
}

_arbe() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} hosts=$ARBE_T3_HOSTS_FILE i hint
    local -a command=("${COMP_WORDS[0]}")

    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD && i < 4; i++)); do
        [[ ${COMP_WORDS[i]} == [a-z]* ]] || break
        [[ $i -lt 3 || -n $(_arbe_words "${command[@]}") ]] || break # only a few have names of two words
        command+=("${COMP_WORDS[i]}")
    done
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} != --t3-hosts ]] || hosts=${COMP_WORDS[i + 1]}
    done
    if [[ $before == --* ]]; then
        hint=$(_arbe_help "${command[@]}" | _arbe_hint "$before")
        [[ $before != --profile && $before != --to-profile ]] || hint=PROFILE
        [[ ${command[1]} != board || $before != --t3 ]] || hint=HOST
        case $hint in
        PROFILE) mapfile -t COMPREPLY < <(compgen -W "$(_arbe_sections "$ARBE_PROFILES" profiles)" -- "$word") ;;
        HOST) mapfile -t COMPREPLY < <(compgen -W "$(_arbe_sections "$hosts" t3)" -- "$word") ;;
        FILE) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        DIR) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        *"|"*) mapfile -t COMPREPLY < <(compgen -W "${hint//|/ }" -- "$word") ;;
        esac
        [[ -z $hint ]] || return
    fi
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_arbe_help "${command[@]}" | _arbe_flags)" -- "$word")
    elif [[ ${command[*]:1} == "t3 logout" || ${command[*]:1} == "t3 probe" ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_arbe_sections "$hosts" t3)" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_arbe_words "${command[@]}")" -- "$word")
        [[ ${command[1]} != streams || ${#command[@]} -lt 3 ]] || mapfile -t COMPREPLY < <(compgen -d -- "$word")
    fi
}

complete -o filenames -F _arbe arbe
