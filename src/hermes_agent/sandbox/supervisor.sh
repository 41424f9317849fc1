# Keeps commands in a place that is reached from elsewhere: starts each under a supervisor that writes down how it
# ended, and answers about them. POSIX sh with the usual small programs, busybox's too.
#
# $1 what to do, $2 the folder of all records, then what that takes. The first line of the answer is a word and its
# facts; what follows is said with each function. A record:
#   meta      one line of JSON: the command, as it was asked
#   script    what the shell of the command runs
#   cwd       where
#   pid       the supervisor's line of /proc/PID/stat; whoever creates it decides whether the command ever runs
#   leader    the command's own line of it
#   alive     a pipe that the supervisor holds open: whoever waits reads to its end
#   out, in   its output; a pipe to its input (in the background only)
#   exit      code, when it began and ended in seconds since the machine's start, whether others of its group were left
#   env       what it leaves to the kept shell: the directory in a comment, then the exported variables
#   listed    there for commands that `list` names
# beside the records of a group `.kept`: the `env` of the last command that left one; and beside all of them `.word`, the
# name of this store, which is another one when records were removed.
umask 077
op=$1 root=$2
shift 2
# Output up to this many bytes comes with the word that the command ended.
SMALL=65536

say() { # a line that stands as it is: some shells' echo reads backslashes
    printf '%s\n' "$1"
}

refuse() { # says why not, and reads what is left of the input: where nobody takes it the answer may be lost on the way
    say "$1"
    cat >/dev/null
    exit
}

within() { # the record of exec id $1
    f=$root/$1 mark=HERMES_EXEC=$root/$1/
}

clock() { # `clock`: hundredths of a second since the machine's start
    read -r clock _ </proc/uptime
    clock=${clock%.*}${clock#*.}
}

begun() { # the record of exec id $1, once its supervisor has said who runs it; that takes some milliseconds
    within "$1"
    tries=0
    while [ ! -s "$f/leader" ] && [ ! -s "$f/exit" ] && [ $tries -lt 50 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
}

lives() { # whether the very process with this line of /proc/PID/stat in file $1 runs; its number is `who` then
    { IFS= read -r line <"$1"; } 2>/dev/null || return 1
    who=${line%% *}
    set -- ${line##*) }
    then=${20}
    { IFS= read -r line <"/proc/$who/stat"; } 2>/dev/null || return 1
    set -- ${line##*) }
    case $1 in [ZX]) return 1 ;; esac
    [ "$then" = "${20}" ]
}

family() { # `found`: live processes of the group, session and descendants of $1 (0: of nobody) and of those with the mark
    leader=$1 table='' members=' '
    for stat in /proc/[0-9]*/stat; do
        { IFS= read -r line <"$stat"; } 2>/dev/null || continue
        set -- ${line##*) }
        case $1 in [ZX]) continue ;; esac
        table="$table ${line%% *}:$2"
        case " ${line%% *} $3 $4 " in *" $leader "*) [ "$leader" = 0 ] || members="$members${line%% *} " ;; esac
    done
    for stat in $(grep -lzF "$mark" /proc/[0-9]*/environ 2>/dev/null); do
        stat=${stat#/proc/}
        members="$members${stat%%/*} "
    done
    grown=''
    while [ "$grown" != "$members" ]; do
        grown=$members
        for row in $table; do
            case $members in *" ${row%:*} "*) continue ;; *" ${row#*:} "*) members="$members${row%:*} " ;; esac
        done
    done
    found=''
    for row in $table; do
        case $members in *" ${row%:*} "*) [ "${row%:*}" = "$$" ] || found="$found ${row%:*}" ;; esac
    done
}

finish() { # ends the family of $1: asked once; after 0.6 s ended, again and again until 1.6 s; `found` are who is left
    family "$1"
    [ -z "$found" ] || kill -TERM $found 2>/dev/null
    clock
    asked=$clock
    while family "$1" && [ -n "$found" ] && clock && [ $((clock - asked)) -lt 160 ]; do
        [ $((clock - asked)) -lt 60 ] || kill -KILL $found 2>/dev/null
        sleep 0.05
    done
}

supervise() { # run the script and write down how it ended; holds `alive` (9) open, which the command does not
    exec </dev/null >/dev/null 2>&1
    trap : HUP INT QUIT TERM
    IFS= read -r me </proc/self/stat
    set -C
    { echo "$me" >"$f/pid"; } 2>/dev/null || exit 125
    set +C
    shell=sh
    command -v bash >/dev/null 2>&1 && shell=bash
    input=/dev/null
    [ -p "$f/in" ] && input=$f/in
    read -r began _ </proc/uptime
    cd "$cwd" || exit 126
    HERMES_EXEC="$f/" setsid "$shell" "$f/script" "$cwd" "$base" 0<>"$input" >>"$f/out" 2>&1 9>&- &
    p=$!
    { IFS= read -r line <"/proc/$p/stat" && echo "$line" >"$f/leader"; } 2>/dev/null
    timer=''
    if [ "$limit" != 0 ]; then # whoever waits is waked by the trap
        trap 'timer=over; finish "$p"' ALRM
        (trap 'kill $!; exit' TERM; sleep "$limit" & wait $! && lives "$f/pid" && kill -ALRM "$who") 9>&- &
        timer=$!
    fi
    while :; do
        wait "$p"
        code=$?
        [ $code$timer = 142over ] && timer='' && continue # it was the wait that the signal ended
        kill -0 "$p" 2>/dev/null || break
    done
    [ -z "${timer#over}" ] || kill "$timer" 2>/dev/null
    read -r ended _ </proc/uptime
    left=0
    kill -0 "-$p" 2>/dev/null && left=1 && : >"$f/listed"
    [ -n "$kept" ] && [ -s "$f/env" ] && mv "$f/env" "$kept"
    echo "$code $began $ended $left" >"$f/exit"
}

start() { # ID SHELL KEEPS FOLDER WORKDIR MODE LIMIT, meta and script as input: begun, and then as `end`; exists; nodir; fail
    within "$1"
    kept='' base=$4 mode=$6 limit=$7
    if [ -n "$2" ]; then
        kept=$root/$2/.kept
        if { IFS= read -r first <"$kept"; } 2>/dev/null && [ -d "${first#\# }" ]; then base=${first#\# }; fi
    fi
    case $5 in
        '') cwd=$base ;;
        /*) cwd=$5 ;;
        *) cwd=$base/$5 ;;
    esac
    cd "$cwd" 2>/dev/null || refuse "nodir $cwd"
    cwd=$PWD
    [ -d "${f%/*}" ] || mkdir -p "${f%/*}" || refuse "fail The records of commands cannot be written."
    mkdir "$f" 2>/dev/null || { [ -d "$f" ] && refuse exists || refuse "fail The record of the command cannot be written."; }
    { IFS= read -r meta && say "$meta" >"$f/meta" && cat >"$f/script" && say "$cwd" >"$f/cwd" && : >"$f/out" &&
        if [ "$mode" = plain ]; then mkfifo "$f/alive"; else mkfifo "$f/alive" "$f/in" && : >"$f/listed"; fi; } ||
        { rm -rf "$f"; refuse "fail The record of the command cannot be written."; }
    [ "$3" = yes ] || kept=''
    exec 9<>"$f/alive"
    supervise &
    say "begun $cwd"
    [ "$mode" = plain ] || exit 0
    exec 8<"$f/alive" 9>&-
    read -r _ <&8
    end "$2"
}

end() { # SHELL: ended CODE SECONDS LEFT, the kept directory, the beginning of the output; running; unseen LEFT
    if [ ! -s "$f/exit" ] && lives "$f/pid"; then
        echo running
    elif { read -r code began ended left <"$f/exit"; } 2>/dev/null; then # it was written before the supervisor ended
        [ "$left" = 0 ] || { family 0; left=${found:+1}; }
        first=''
        [ -n "$1" ] && { IFS= read -r first <"$root/$1/.kept"; } 2>/dev/null
        echo "ended $code $began $ended ${left:-0}"
        say "${first#\# }"
        [ ! -s "$f/out" ] || head -c $((SMALL + 1)) "$f/out"
    else
        family 0
        [ -z "$found" ] || : >"$f/listed"
        echo "unseen ${found:+1}"
    fi
}

poll() { # ID SHELL: as `end`
    begun "$1"
    end "$2"
}

await() { # ID SHELL: when it has ended, as `end`
    begun "$1"
    if lives "$f/pid" && exec 9<>"$f/alive" 8<"$f/alive" 9>&-; then read -r _ <&8; fi
    end "$2"
}

attach() { # ID: found, where it runs, meta; none
    within "$1"
    tries=0
    while [ -d "$f" ] && [ ! -s "$f/pid" ] && [ $tries -lt 20 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    [ -d "$f" ] || { echo none; exit; }
    if (set -C && : >"$f/pid") 2>/dev/null; then # it never began, and now never will
        rm -rf "$f"
        echo none
        exit
    fi
    echo found
    cat "$f/cwd" "$f/meta"
}

word() { # `word`: what stands in file $1, made where there is none
    word=''
    [ -e "$1" ] || (set -C && read -r word </proc/sys/kernel/random/uuid && say "$word" >"$1") 2>/dev/null
    { [ -f "$1" ] && IFS= read -r word <"$1"; } 2>/dev/null
}

where() { # ok, this boot of the machine, the name of the store of records, the machine; a name that cannot be had is new
    read -r boot </proc/sys/kernel/random/boot_id
    word "/dev/shm/hermes-$(id -u)"
    boot=$boot.$word
    mkdir -p "$root"
    word "$root/.word"
    [ -n "$word" ] || read -r word </proc/sys/kernel/random/uuid
    say "ok $boot $word $(uname -n)"
}

list() { # GROUP: ok, then a line for each that is listed: when it began, its number, its id
    echo ok
    for f in "$root/$1"/*/listed; do
        f=${f%/listed}
        { IFS= read -r line <"$f/pid"; } 2>/dev/null || continue
        who=${line%% *} group=$1
        set -- ${line##*) }
        echo "${20} $who $group/${f##*/}"
        set -- "$group"
    done
}

size() { # ID: ok BYTES
    echo "ok $(wc -c <"$root/$1/out")"
}

part() { # ID START BYTES: ok, then that part of its output
    echo ok
    tail -c "+$(($2 + 1))" "$root/$1/out" | head -c "$3"
}

cover() { # ID START, bytes as input: ok; puts them over that part of its output, whatever is added to it meanwhile
    size=4096
    [ $(($2 % size)) = 0 ] || size=1
    dd of="$root/$1/out" bs="$size" seek="$(($2 / size))" conv=notrunc 2>/dev/null && echo ok || refuse "fail The output cannot be written."
}

send() { # ID, bytes as input: ok; fail
    begun "$1"
    if ! lives "$f/pid" || [ -f "$f/exit" ] || [ ! -p "$f/in" ]; then
        refuse "fail It takes no input: it has ended or does not run in the background."
    elif timeout 2 sh -c 'exec cat 1<>"$0"' "$f/in"; then
        echo ok
    else
        refuse "fail It does not read its input; a part may have been sent."
    fi
}

signal() { # ID NUMBER: ok
    begun "$1"
    lives "$f/leader" && kill "-$2" "-$who" 2>/dev/null
    echo ok
}

stop() { # ID SHELL: gone or left, and then as `end`
    begun "$1"
    leader=0
    [ ! -f "$f/exit" ] && lives "$f/leader" && leader=$who
    ran=$leader
    finish "$leader"
    if [ -z "$found" ]; then
        if lives "$f/pid" && exec 9<>"$f/alive" 8<"$f/alive" 9>&-; then read -r _ <&8; fi
        echo gone
    else
        echo left
    fi
    [ -f "$f/exit" ] || [ "$ran" = 0 ] || echo "137 0 0 0" >"$f/exit"
    end "$2"
}

directory() { # SHELL: ok, then where its next command runs
    echo ok
    { IFS= read -r first <"$root/$1/.kept"; } 2>/dev/null && say "${first#\# }"
}

rewrite() { # ID, bytes as input: ok; fail; puts them in place of its whole output
    { cat >"$root/$1/out"; } 2>/dev/null && echo ok || refuse "fail The output cannot be written."
}

prune() { # MINUTES MEGABYTES: ok COUNT; forgets what ended longer ago, and the oldest where outputs take more
    count=0
    for f in $(find "$root" -mindepth 3 -maxdepth 3 -name exit -mmin "+$1" 2>/dev/null); do
        rm -rf "$root/.word" "${f%/exit}" && count=$((count + 1))
    done
    size=0
    for f in $(ls -t "$root"/*/*/exit 2>/dev/null); do
        size=$((size + $(wc -c <"${f%/exit}/out")))
        [ "$size" -gt $(($2 * 1048576)) ] && rm -rf "$root/.word" "${f%/exit}" && count=$((count + 1))
    done
    echo "ok $count"
}

"$op" "$@"
