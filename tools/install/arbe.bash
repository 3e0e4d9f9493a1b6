# Completion of arbe for bash. What there is to complete is read from the program's own help, so that it never differs.

# _arbe_help COMMAND...: the help of a command.
_arbe_help() {
    "$@" --help 2>/dev/null
}

# The commands or tools that a help text lists below a line that ends in ":".
_arbe_words() {
    sed -n -e 's/^  arbe [a-z]* \([a-z][a-z-]*\) .*/\1/p' -e 's/^  \([a-z][a-z-]*\)  *[a-z].*/\1/p'
}

# The flags of a help text.
_arbe_flags() {
    sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'
}

# What the value of flag $1 looks like in a help text: its hint.
_arbe_hint() {
    sed -n "s/^  $1 \([A-Za-z0-9|:*-]*\).*/\1/p"
}

# The profiles of `arbe stream`.
_arbe_profiles() {
    sed -n 's/^ *\[ *\([^]]*[^] ]\) *\] *$/\1/p' "${ARBE_PROFILES:-${XDG_CONFIG_HOME:-$HOME/.config}/arbe/profiles}" 2>/dev/null
}

_arbe() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i hint
    local -a command=("${COMP_WORDS[0]}")

    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD && i < 3; i++)); do
        [[ ${COMP_WORDS[i]} == [a-z]* ]] || break
        command+=("${COMP_WORDS[i]}")
    done
    if [[ $before == --* ]]; then
        hint=$(_arbe_help "${command[@]}" | _arbe_hint "$before")
        [[ $before != --profile && $before != --to-profile ]] || hint=PROFILE
        case $hint in
        PROFILE) mapfile -t COMPREPLY < <(compgen -W "$(_arbe_profiles)" -- "$word") ;;
        FILE) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        DIR) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        *"|"*) mapfile -t COMPREPLY < <(compgen -W "${hint//|/ }" -- "$word") ;;
        esac
        [[ -z $hint ]] || return
    fi
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_arbe_help "${command[@]}" | _arbe_flags)" -- "$word")
    elif [[ ${command[1]} == stream && ${#command[@]} -eq 3 ]]; then
        return # streams are on the server
    elif ((${#command[@]} == 3)); then
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_arbe_help "${command[@]}" | _arbe_words)" -- "$word")
    fi
}

complete -o filenames -F _arbe arbe
