//! Completion for bash. It splits words at `:` and `=`; the function joins them again.

use super::{all_flags, listed};
use crate::tools::usage::{Usage, Word, table};
use std::fmt::Write;

pub fn text() -> String {
    let mut values = String::new();
    for flag in all_flags() {
        if let Some(value) = flag.value.as_ref().filter(|value| !value.optional) {
            let _ = writeln!(values, "        --{}) {}; return ;;", flag.name, action(value.word));
        }
    }
    let mut commands = String::new();
    for usage in table::COMMANDS {
        let operand = usage.operand.map_or("true".to_string(), action);
        let _ = writeln!(commands, "        {}) flags='{}'; operand() {{ {operand}; }} ;;", usage.name, flags(usage));
    }
    let names: Vec<&str> = table::COMMANDS.iter().map(|usage| usage.name).collect();
    let alone = table::ALONE.iter().map(|flag| format!("--{}", flag.name)).collect::<Vec<_>>().join(" ");
    let alone = format!("{} {alone} -e", flags(&table::REPL).replace(" --help", ""));
    TEXT.replace("@VALUES@", values.trim_end())
        .replace("@COMMANDS@", commands.trim_end())
        .replace("@NAMES@", &names.join(" "))
        .replace("@ALONE@", &alone)
        .replace("@PATTERN@", &names.join("|"))
}

fn flags(usage: &Usage) -> String {
    usage.flag_names().map(|name| format!("--{name}")).collect::<Vec<_>>().join(" ")
}

/// The command that fills in the answers.
fn action(word: Word) -> String {
    match word {
        Word::Script | Word::Path => "_tscript_files '*.rhai'".to_string(),
        Word::Folder => "_tscript_files ''".to_string(),
        Word::File => "_tscript_files '*'".to_string(),
        Word::Free => "true".to_string(),
        Word::OneOf(_) | Word::Code | Word::Topic => format!("_tscript_words '{}'", listed(word).join(" ")),
    }
}

const TEXT: &str = r#"# bash completion of tscript, written by `tscript completions bash`

_tscript_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Files of a pattern, and folders.
_tscript_files() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -d -- "$cur"))
    if [[ -n $1 ]]; then
        COMPREPLY+=($(compgen -f -X "!$1" -- "$cur"))
        mapfile -t COMPREPLY < <(printf '%s\n' "${COMPREPLY[@]}" | sort -u | sed '/^$/d')
    fi
    compopt -o filenames 2>/dev/null
}

_tscript_answers() {
    local cur=${words[-1]} previous='' command='' flags='' word
    ((${#words[@]} > 1)) && previous=${words[-2]}
    if [[ $cur == --*=* ]]; then
        previous=${cur%%=*} cur=${cur#*=}
    fi
    # What follows the name of a script, or stands behind `--`, is the script's.
    for word in "${words[@]:1:${#words[@]}-2}"; do
        case $word in
        @PATTERN@) [[ -z $command ]] && command=$word ;;
        --) _tscript_files '*'; return ;;
        *.rhai) [[ -z $command ]] && { _tscript_files '*'; return; } ;;
        esac
    done
    case $previous in
@VALUES@
    esac
    operand() { _tscript_words '@NAMES@'; local found=("${COMPREPLY[@]}"); _tscript_files '*.rhai'; COMPREPLY+=("${found[@]}"); }
    case $command in
@COMMANDS@
        *) flags='@ALONE@' ;;
    esac
    if [[ $cur == -* ]]; then _tscript_words "$flags"; else operand; fi
}

_tscript() {
    local words=() i word whole last
    COMPREPLY=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 1)) && [[ $word == [:=]* || ${words[-1]} == *[:=] ]]; then words[-1]+=$word; else words+=("$word"); fi
    done
    _tscript_answers
    unset -f operand
    # Answers hold what bash takes for the last word only.
    whole=${words[-1]} last=${COMP_WORDS[COMP_CWORD]}
    if [[ $whole == *:* && $last != "$whole" ]]; then
        [[ $last == [:=] ]] && last=
        whole=${whole#--*=}
        COMPREPLY=("${COMPREPLY[@]#"${whole%"$last"}"}")
    fi
}
complete -F _tscript tscript
"#;
