# shellcheck shell=sh disable=SC2015
# dibs.sh: work on a dibs board from any POSIX shell. Source this file; it needs no Python.
#
#   claim_task [--resume] ID        claim a given task
#   next_task                       claim the next task
#   heartbeat [CLAIM]               extend the lease
#   verify_ownership [CLAIM]        check that the claim is still yours
#   done_task [CLAIM]               commit the finished task
#   release_task [CLAIM]            the same, for fleets that `rm` their claims when they are done
#   fail_task [CLAIM [REASON [S]]]  give up after a failure; it starts again in S seconds, or as the board says
#   return_task [CLAIM [REASON [S]]]  make the task available again, at once or in S seconds
#   reap_stale                      requeue stale claims, and make due tasks available
#   note_task TEXT                  say what the work is doing now; it is no heartbeat
#   process_loop HANDLER [ARG...]   claim, run the handler with heartbeats, commit, until no task is left
#                                   (a failed task comes back later: DIBS_POLL makes the loop stay for it)
#
# Environment:
#   DIBS_BOARD (or DIBS_DIR)   the board; refused if both are set and differ. Without them it is the current directory,
#                              but only if that is a board or holds task files: nothing is looked for above it, no
#                              dibs.toml is read, and no directory becomes a board by accident
#   DIBS_OWNER                 who claims (default: the host's name)
#   DIBS_HOST                  the name of this host, for records and pauses (default: that of uname -n)
#   DIBS_TTL                   the lease in seconds (default: the board's, 120)
#   DIBS_META                  a text for operators
#   DIBS_POLL                  seconds between two attempts of process_loop to claim (default: it ends when no task is left)
#
# While claims are paused (`dibs pause`), claim_task and next_task print why and exit with 4, and
# process_loop waits. A claim that you have is not affected.
#
# A claim prints its exact name and exports DIBS_CLAIM (that name), DIBS_ID, DIBS_FENCE and DIBS_PAYLOAD
# (the file). In $( ) only the printed name survives: assign it to DIBS_CLAIM. CLAIM is an exact name, or
# the id of $DIBS_CLAIM (default: $DIBS_CLAIM).
#
# process_loop commits if its handler exits with 0, and fails the task otherwise. A caller's `set -e` is
# in effect in the handler, unless the loop itself is called in a condition. It returns 0 when no task is left,
# also if handlers failed: `dibs ls state=failed` and `dibs log` show what did. A handler whose claim is lost
# is not stopped, but cannot commit; it can ask with verify_ownership.
#
# A task that waits for a person's answer (`.asked`) is left alone: claim_task answers 4. A handler asks with
# `dibs ask "$DIBS_CLAIM" TEXT`, and the loop then reports its claim as lost. Claims keep the number of the answer
# in their names; `dibs show ID` prints it.
#
# Exit codes: 0 done, 1 the disk refused, 2 bad input, 3 refused, 4 nothing to claim, held or paused,
# 5 lost or uncertain: stop working.
#
# After a restart, call claim_task again. With the claim's name in DIBS_CLAIM, a live claim is beaten and
# kept, and one past its ttl is claimed again under a higher fence. An owner's text proves nothing,
# because two agents may share it: without the name the task is held (4) until the claim is stale. Then
# claim_task reaps the claim, which counts an attempt, or with --resume claims it again for its owner.
# With the name, --resume does that at any time and so revokes the old claim.
#
# Each change is one rename of an exact name. The names on the disk show whether it happened, not the exit
# code of mv. For names without a nonce, `mv -n` of new coreutils asks the kernel for RENAME_NOREPLACE;
# older ones and busybox only look first, and exit differently when they skip. mv copies across mounts, so
# a board must be on one mount. Only dibs itself handles locks, shell claims and their takeovers, and
# claims whose process is dead but whose ttl is not over.

dibs_nl='
'
dibs_host=${DIBS_HOST:-$(command uname -n)} dibs_gid=$(command id -g)
dibs_host=${dibs_host:-localhost}
# What depends on this boot's clock is named after the boot and its time namespace, as in dibs, not after
# the host. If the boot id is hidden, nothing is shared, and only the journal is named after the host.
dibs_tag=$(
  unset -v b
  LC_ALL=C
  { read -r b < /proc/sys/kernel/random/boot_id; } 2> /dev/null && [ "$b" ] || exit 0
  printf %.64s "$(printf %s "$b$(command readlink /proc/self/ns/time)" | command tr -dc 'A-Za-z0-9')"
)
dibs_key=${dibs_tag:-$(command od -An -N8 -tx1 /dev/urandom | command tr -dc '0-9a-f')}
dibs_named=${dibs_tag:-$(printf %.60s "$dibs_host" | command tr -c 'A-Za-z0-9' -)}
dibs_salt=$(
  set +euf
  unset IFS
  unset -v b salt
  salt=0
  for b in $(printf %s "$dibs_host $$ $(command date +%s%N 2> /dev/null)" | command od -An -v -tu1); do
    salt=$(((salt * 31 + b) & 4294967295))
  done
  printf %s "$salt"
)
case $(command mv --help 2>&1) in *--no-target-directory* | *-[fin]*T]*) dibs_T=-T ;; *) dibs_T= ;; esac

claim_task() { dibs_keep claim "$@"; }
next_task() { dibs_keep next; }
verify_ownership() { dibs_do verify "${1:-}" "${dibs_lease:-}"; }
# shellcheck disable=SC2120
done_task() { dibs_do end "done" "${1:-}" ""; }
fail_task() { dibs_do end fail "${1:-}" "${2:-}" "${3:-}"; }
reap_stale() { dibs_do reap; }
note_task() { dibs_do note "${1:-}"; }

release_task() { dibs_do end "done" "${1:-}" ""; }
return_task() { dibs_do end release "${1:-}" "${2:-}" "${3:-}"; }

heartbeat() {
  dibs_out=$(dibs_do beat "${1:-}" "${dibs_lease:-}") || return
  dibs_lease=$dibs_out
}

process_loop() {
  [ $# -gt 0 ] || { dibs_say "process_loop needs a handler: give a command"; return 2; }
  dibs_sweep=0 dibs_met='' dibs_idle_at='' dibs_idle_as=''
  while :; do
    dibs_rc=0
    dibs_out=$(dibs_do sweep "$dibs_sweep") && dibs_sweep=$dibs_out
    next_task > /dev/null || dibs_rc=$?
    [ "$dibs_rc" = 4 ] || dibs_busy
    case $dibs_rc in
      0)
        # shellcheck disable=SC3041
        case $- in *E*) set +E; dibs_work "$@"; set -E ;; *) dibs_work "$@" ;; esac
        case $dibs_rc in 0 | 3 | 5) ;; *) return 1 ;; esac ;;
      4)
        dibs_met=$dibs_pause # a pause that was met before is not printed again
        [ "${DIBS_POLL:-}" ] || [ "$dibs_pause" ] || return 0
        dibs_linger || return 2 ;;
      5) ;;
      *) return "$dibs_rc" ;;
    esac
  done
}

# A worker that waits shows this to others from the third second on, by a file in .dibs/waiting that it
# touches each 10 s. If the worker is killed, the file is ignored after 30 s and removed after 60.
dibs_linger() { # sleep until the next try
  dibs_left=${DIBS_POLL:-1}
  while :; do
    dibs_idle
    case $dibs_left in *[!0-9]* | 0* | ???????*) break ;; esac
    [ "$dibs_left" -gt 5 ] || break
    command sleep 5 || return
    dibs_left=$((dibs_left - 5))
  done
  command sleep "$dibs_left"
}

dibs_idle() {
  dibs_out=$(set +eu; dibs_fresh; unset IFS; dibs_boot && printf %s "$boot") || return 0
  [ "$dibs_idle_at" ] || dibs_idle_at=$((dibs_out + 200))
  [ "$dibs_out" -ge "$dibs_idle_at" ] || return 0
  dibs_idle_at=$((dibs_out + 1000))
  dibs_out=$(dibs_do show "$dibs_idle_as") && dibs_idle_as=$dibs_out || :
}

dibs_busy() {
  [ ! "$dibs_idle_as" ] || dibs_do hide "$dibs_idle_as" || :
  dibs_idle_at='' dibs_idle_as=''
}

# The heartbeats run beside the handler. They end by their pid, with the claim, or with the loop, so that
# no one beats for a dead worker. They are killed with SIGKILL, because the caller may ignore other
# signals. The handler is not part of a condition, where `set -e` would have no effect. Result: dibs_rc.
dibs_work() {
  IFS= read -r dibs_self < /proc/self/stat || { dibs_rc=1; return; }
  dibs_self=${dibs_self%% *}
  (dibs_beats "$DIBS_CLAIM" "$dibs_lease") < /dev/null > /dev/null &
  dibs_pid=$!
  case $- in *e*) dibs_e=-e ;; *) dibs_e=+e ;; esac
  set +e
  (set "$dibs_e"; "$@")
  dibs_rc=$?
  set "$dibs_e"
  command kill -KILL "$dibs_pid" 2> /dev/null || :
  wait "$dibs_pid" 2> /dev/null || :
  set -- "exit code $dibs_rc"
  if [ "$dibs_rc" = 0 ]; then done_task "" || dibs_rc=$?
  else dibs_rc=0; fail_task "" "$1" || dibs_rc=$?; fi
}

# Sleeps are short, because a killed process leaves its sleep behind. Open files of the caller are closed,
# because they may be its locks.
dibs_beats() {
  set +eu
  dibs_fresh
  unset IFS
  exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
  dibs_lease=$2
  while :; do
    dibs_boot
    dibs_next=$(((${dibs_lease#* } - boot) * 5 / 12)) # a third of the ttl, or of the time that is left
    [ "$dibs_next" -ge 25 ] || dibs_next=25
    dibs_next=$((boot + dibs_next))
    while [ "$boot" -lt "$dibs_next" ]; do
      dibs_nap $((dibs_next - boot))
      dibs_parent && [ "$dibs_ppid" = "$dibs_self" ] || return
      dibs_boot
    done
    heartbeat "$1" || [ $? = 1 ] || return
  done
}

dibs_nap() { # HUNDREDTHS of a second, at most one second
  [ "$1" -lt 100 ] && command sleep "$(printf 0.%02d "$1")" 2> /dev/null || command sleep 1
}

dibs_parent() {
  read -r dibs_ppid < /proc/self/stat || return
  dibs_beater=${dibs_ppid%% *} dibs_ppid=${dibs_ppid##*) }
  dibs_ppid=${dibs_ppid#* } dibs_ppid=${dibs_ppid%% *}
}

# Runs a claiming verb, which prints the claim, its deadline, the board's path, and the id.
dibs_keep() {
  dibs_pause=
  dibs_out=$(dibs_do "$@") || {
    set -- $? "${dibs_met:-}"
    [ "$1" = 14 ] || return "$1"
    dibs_pause=$dibs_out dibs_met=
    [ "$dibs_pause" = "$2" ] || dibs_say "$dibs_pause"
    return 4
  }
  DIBS_CLAIM=${dibs_out%%"$dibs_nl"*} dibs_out=${dibs_out#*"$dibs_nl"}
  dibs_lease="$DIBS_CLAIM ${dibs_out%%"$dibs_nl"*}" dibs_out=${dibs_out#*"$dibs_nl"}
  DIBS_PAYLOAD=${dibs_out%%"/./$dibs_nl"*} DIBS_ID=${dibs_out#*"/./$dibs_nl"}
  DIBS_PAYLOAD=$DIBS_PAYLOAD/$DIBS_CLAIM.claimed DIBS_ID=${DIBS_ID%.}
  DIBS_FENCE=${DIBS_CLAIM#*.f} DIBS_FENCE=${DIBS_FENCE%%[!0-9]*}
  export DIBS_CLAIM DIBS_ID DIBS_FENCE DIBS_PAYLOAD
  printf '%s\n' "$DIBS_CLAIM"
}

dibs_say() { # a name may contain what a terminal obeys or hides
  printf 'dibs: %s\n' "$(printf %s "$*" | dibs_seen)" >&2
}

# Replaces control characters by ?, also those of UTF-8: C1, marks of direction, and what has no width.
dibs_seen() (
  LC_ALL=C
  export LC_ALL
  # shellcheck disable=SC2059
  dibs_byte() { printf "\\$1"; }
  dibs_any="[$(dibs_byte 200)-$(dibs_byte 277)]"
  command tr '\000-\037\177' '?' | command sed \
    -e "s/^$dibs_any$dibs_any*/?/" -e "s/\([ -~]\)$dibs_any$dibs_any*/\1?/g" \
    -e "s/$(dibs_byte 302)[$(dibs_byte 200)-$(dibs_byte 237)$(dibs_byte 255)]/?/g" -e "s/$(dibs_byte 330)$(dibs_byte 234)/?/g" \
    -e "s/$(dibs_byte 342)$(dibs_byte 200)[$(dibs_byte 213)-$(dibs_byte 217)$(dibs_byte 250)-$(dibs_byte 256)]/?/g" \
    -e "s/$(dibs_byte 342)$(dibs_byte 201)[$(dibs_byte 240)-$(dibs_byte 257)]/?/g" -e "s/$(dibs_byte 357)$(dibs_byte 273)$(dibs_byte 277)/?/g" \
    -e "s/$(dibs_byte 357)$(dibs_byte 277)[$(dibs_byte 271)-$(dibs_byte 273)]/?/g" -e "s/$(dibs_byte 363)$(dibs_byte 240)[$(dibs_byte 200)-$(dibs_byte 201)]$dibs_any/?/g"
)
dibs_die() { dibs_code=$1; shift; dibs_say "$*"; exit "$dibs_code"; }

# Unsets the short names used here, and bash options that would change their meaning.
dibs_fresh() {
  unset -v a after again age asked attempts b beat beaten before begun boot chance claim code ctime_moves cttl \
    data delay dst due durability e eid err f fence folded folder form found fuzz g gone group here how hush i id \
    judged k key landed limit line lines links losses m max_attempts mine msg n name nanos need nonce note now nowns \
    old ours own owner p part prio probe pulse r rc reaped record resume retry round salt series shared skew \
    skip skipped src start state stem tag text there top torn tried trouble ttl unbeaten until value verb wait \
    want where why x y yt z zt ||
    dibs_die 2 "a readonly variable has a name that dibs.sh uses: rename the variable"
  # shellcheck disable=SC3044,SC3047
  [ -z "${BASH_VERSION:-}" ] || { shopt -u failglob nocasematch; trap - ERR; unset -v GLOBIGNORE; }
}

# Everything below runs in a subshell, in the board's directory and in the C locale.
dibs_do() (
  set +eufC
  dibs_fresh
  IFS=" $(printf '\t')$dibs_nl" LC_ALL=C
  export LC_ALL
  unset CDPATH
  dibs_open "$1"
  dibs_verb=$1
  shift
  "dibs_$dibs_verb" "$@"
)

dibs_open() { # VERB
  where=${DIBS_BOARD-${DIBS_DIR-.}}
  [ -z "${DIBS_BOARD:-}" ] || [ "${DIBS_DIR:-$where}" = "$where" ] ||
    dibs_die 2 "DIBS_BOARD and DIBS_DIR name different boards: unset one"
  [ "$where" ] || dibs_die 2 "the path of the board is empty: set DIBS_BOARD to a directory"
  case $where in /*) ;; *) where=./$where ;; esac
  command cd "$where" > /dev/null 2>&1 || dibs_die 1 "$where: the directory does not exist: give the one with the tasks"
  where=$PWD # in full, for errors
  case $1 in beat | verify) [ -d .dibs ] || dibs_die 5 "$where/.dibs is missing: move it back; stop" ;; esac
  [ "${DIBS_BOARD+x}${DIBS_DIR+x}" ] || [ -d .dibs ] || dibs_tasks ||
    dibs_die 2 "$where is not a board: set DIBS_BOARD to its directory, or make one with \`dibs init\`"
  dibs_settings
  cttl=$ttl
  [ -z "${DIBS_TTL:-}" ] || { dibs_ttl "$DIBS_TTL" || dibs_die 2 "DIBS_TTL must be 1 to 86400 seconds"; cttl=$r; }
  owner=${DIBS_OWNER:-$dibs_host}
  case $owner in *[[:cntrl:]]*) dibs_die 2 "DIBS_OWNER contains a control character: remove it" ;; esac
  dibs_fits "$owner" 256 || dibs_die 2 "DIBS_OWNER has more than 256 characters: shorten it"
  # shellcheck disable=SC2046
  set -- $(command stat -c '%a %g %D %h' . .dibs/probe 2> /dev/null)
  links=${8:-1}
  case $# in 4 | 8) ;; *) false ;; esac && dibs_boot && [ $((1 << 40)) -gt 0 ] || dibs_die 1 "this needs stat -c, /proc/uptime and 64-bit numbers: use the dibs command here"
  command umask "$(printf %04o $((~0$1 & 0777)))"
  tag=$dibs_named-$3 group=$2
  case $1:$2 in [2367]???:* | *:"$dibs_gid") group= ;; esac
  # In format 2 this is a file; in format 1 it is the folder of the records.
  [ ! -d .dibs/claims ] || [ -L .dibs/claims ] ||
    dibs_die 1 "this board has format 1, from an earlier version of dibs: stop its workers, then run \`dibs upgrade\`"
  for f in .dibs "done" failed .dibs/records .dibs/known .dibs/gone .dibs/new .dibs/past .dibs/plain \
    .dibs/aside .dibs/witness .dibs/looks .dibs/journal .dibs/free; do
    [ "$f" != .dibs/known ] || [ -d $f ] || [ ! -e .dibs/claims ] ||
      dibs_die 1 "$f was lost: run \`dibs check --repair\`, which finds out which ids were used"
    [ "$f" != .dibs/known ] || [ -d $f ] || ! dibs_used || dibs_note_lost
    if [ -L "$f" ] || { [ -e "$f" ] && [ ! -d "$f" ]; }; then dibs_die 1 "$f is not a real folder: replace it by a folder"; fi
    [ -d "$f" ] || { command mkdir "$f" 2> /dev/null && dibs_own "$f"; } || [ -d "$f" ] ||
      dibs_die 1 "$where/$f cannot be made: check the permissions"
  done
  f=.dibs/claims
  [ -f "$f" ] || { (set -C; : > "$f") 2> /dev/null && dibs_own "$f"; }
  [ -f "$f" ] && [ ! -L "$f" ] || dibs_die 1 "$where/$f is not a plain file: remove it"
}

dibs_tasks() { # whether there are task files
  for x in *.available *.claimed *.claimed-by-* *.later *.asked *.held *.free; do
    [ -e "$x" ] || [ -L "$x" ] || continue
    dibs_read "$x" && return
  done
  return 1
}

dibs_used() { # whether there are names that only dibs makes, which means that .dibs was lost
  for x in *.f[0-9]*.*; do
    dibs_read "$x" && [ "$claim$fence$attempts$prio$asked$due" != 005 ] && return
  done
  for x in "done"/*.f[0-9]*.* failed/*.f[0-9]*.*; do
    dibs_claimed "${x##*/}" && return
  done
  return 1
}

dibs_note_lost() { # make .dibs/known again with a note inside, so that dibs adds no id twice
  dibs_nonce
  x=$f.$nonce
  command mkdir "$x" && dibs_own "$x" && : > "$x/lost" && dibs_own "$x/lost" && command mv -n "$x" "$f" ||
    dibs_die 1 "$where/$f cannot be made: check the permissions"
  x=$f/${x##*/}
  [ ! -d "$x" ] || { command rm -f "$x/lost" && command rmdir "$x"; } # another was faster
}

dibs_fits() { # TEXT MAX: whether the text has at most so many characters
  [ ${#1} -le "$2" ] || [ "$(printf %s "$1" | command tr -d '\200-\277' | command wc -c)" -le "$2" ]
}

dibs_own() { [ -z "$group" ] || command chgrp "$group" "./$1" 2> /dev/null || :; }

# Reads board.toml as dibs writes it. A worker must not work with settings that it cannot read.
dibs_settings() {
  ttl=12000 max_attempts=5 durability=normal retry='100 1000 6000 60000'
  f=.dibs/board.toml
  [ -e "$f" ] || [ -L "$f" ] || return 0
  [ -f "$f" ] && [ ! -L "$f" ] && [ -r "$f" ] || dibs_die 1 "$f is not a plain, readable file: replace it"
  set -f
  while IFS='=' read -r key value || [ "$key" ]; do
    case $key in '[[hooks]]'*) break ;; *'#'*) key=${key%%#*} value=x ;; esac # only `dibs serve` uses hooks
    # shellcheck disable=SC2086
    set -- $key = ${value%%#*}
    [ "$1" != retry ] || set -- retry = "${value%%#*}"
    key=$1 value=${3:-}
    [ "$key" != = ] || continue
    [ $# = 3 ] || key=
    case $key in
      format) [ "$value" = 1 ] || [ "$value" = 2 ] ;;
      ttl) dibs_lease "$value" && ttl=$r ;;
      plain_ttl) dibs_lease "$value" ;;
      max_attempts) dibs_number "$value" 9 && [ "$value" -gt 0 ] && max_attempts=$value ;;
      durability) case $value in '"off"' | '"normal"' | '"strict"') durability=${value#?} durability=${durability%?} ;; *) false ;; esac ;;
      retry) dibs_delays "$value" ;;
      reap_dead) [ "$value" = true ] || [ "$value" = false ] ;;
      run_log | run_timeout | run_idle | keep_logs) [ "$value" ] ;; # only dibs itself uses these
      *) false ;;
    esac || dibs_die 1 "$f: this shell library cannot read $key = $value: write it as dibs does"
  done < "$f"
  set +f
}

# Numbers and clocks, in hundredths of a second.

dibs_number() { case $1 in '' | *[!0-9]* | 0?*) return 1 ;; esac; [ ${#1} -le "$2" ]; }

dibs_lease() { # a ttl as a number, or as a time in quotes
  case $1 in '"'*'"') ;; *) dibs_ttl "$1" && return || return 1 ;; esac
  i=${1#?} && dibs_delay "${i%?}" && [ "$r" -ge 100 ]
}

dibs_ttl() {
  case $1 in '' | *[!0-9.]* | *.*.* | .* | *.) return 1 ;; esac
  i=${1%%.*} x=${1#"${1%%.*}"}
  x=${x#.}00 x=${x%"${x#??}"}
  while case $i in 0?*) ;; *) false ;; esac; do i=${i#0}; done
  [ ${#i} -le 5 ] && r=$((i * 100 + 1$x - 100)) && [ "$r" -ge 100 ] && [ "$r" -le 8640000 ]
}

dibs_delays() { # a list of times: each in hundredths in retry
  retry='' x=''
  for i in $1; do x=$x$i; done
  case $x in '['*']') ;; *) return 1 ;; esac
  y=${x#?} y=${y%?} y=${y%,}
  while [ "$y" ]; do
    z=${y%%,*}
    case $y in *,*) y=${y#*,} ;; *) y='' ;; esac
    case $z in '"'*'"') z=${z#?} z=${z%?} ;; *) return 1 ;; esac
    dibs_delay "$z" && retry="$retry $r" || return
  done
}

dibs_delay() { # a time up to a day, in hundredths
  case $1 in
    *ms) b=0 ;; *s) b=1 ;; *m) b=60 ;; *h) b=3600 ;; *d) b=86400 ;; *[0-9]) b=1 ;; *) return 1 ;; esac
  x=${1%[smhd]} x=${x%m}
  case $x in '' | *[!0-9.]* | *.*.* | .* | *.) return 1 ;; esac
  i=${x%%.*} x=${x#"${x%%.*}"}
  x=${x#.}00 x=${x%"${x#??}"}
  while case $i in 0?*) ;; *) false ;; esac; do i=${i#0}; done
  [ ${#i} -le 8 ] || return
  r=$((i * 100 + 1$x - 100))
  [ $b = 0 ] && r=$((r / 1000)) || r=$((r * b))
  [ $r -le 8640000 ]
}

dibs_boot() { # CLOCK_BOOTTIME, which is never set
  { read -r boot _ < /proc/uptime; } 2> /dev/null && boot=$((${boot%.*} * 100 + 1${boot#*.} - 100))
}

dibs_centi() { # SECONDS TEXT: in hundredths; TEXT may contain the fraction
  dibs_number "$1" 12 || return
  case $2 in *.[0-9][0-9]*) x=${2#*.} x=${x%"${x#??}"} ;; *) x=00 fuzz=100 ;; esac
  r=$(($1 * 100 + 1$x - 100))
}

dibs_nanos() { # SECONDS TEXT: the same in nanoseconds
  x=000000000
  case $2 in *.[0-9]*) x=${2#*.} x=${x%%[!0-9]*}00000000 x=${x%"${x#?????????}"} ;; esac
  nanos=$(($1 * 1000000000 + 1$x - 1000000000))
}

dibs_now() { # the file system's clock: hundredths in now, nanoseconds in nowns
  probe=.dibs/probe fuzz=1
  if [ ! -e $probe ] && [ ! -L $probe ]; then (set -C; : > $probe) 2> /dev/null && dibs_own $probe; fi
  [ -f $probe ] && [ ! -L $probe ] || return
  [ "$links" = 1 ] || dibs_replace_probe || return
  dibs_touch $probe && i=$(command stat -c '%h|%Y|%y' $probe 2> /dev/null) && [ ! -L $probe ] || return
  links=${i%%|*} i=${i#*|}
  [ -f $probe ] &&
    dibs_centi "${i%%|*}" "${i#*|}" && now=$r && dibs_nanos "${i%%|*}" "${i#*|}" && nowns=$nanos
}

dibs_replace_probe() ( # after `cp -al` its second name belongs to the copy, whose times must stay
  dibs_nonce
  x=$probe.$nonce
  (set -C; : > "$x") 2> /dev/null && dibs_own "$x" && command mv -f "$x" "$probe" 2> /dev/null
)

dibs_clock() { dibs_now || dibs_die 1 "$where/$probe cannot be touched or replaced, or is not a plain file"; }

dibs_touch() { # creates nothing and follows no link
  command touch -ch "./$1" 2> /dev/null || { [ ! -L "./$1" ] && command touch -c "./$1" 2> /dev/null; }
}

dibs_nonce() {
  # shellcheck disable=SC2046
  set -- $(command od -An -N5 -tu1 /dev/urandom)
  [ $# = 5 ] || dibs_die 1 "/dev/urandom gives no random numbers"
  # Clones of one machine image can draw the same random bytes: time, process and host differ.
  nonce=$((((($1 * 256 + $2) * 256 + $3) * 256 + $4) * 256 + $5))
  nonce=$(printf %010X $(((nonce ^ ((dibs_salt + ${nowns:-0}) * 679535556991)) & 1099511627775)))
}

# Names. Each reader sets eid, fence, attempts, prio and claim; it returns 1 for a name of no task.

# `asked` is the part about questions as it is spelled; `due` is when a later task starts, else empty.
dibs_stamp() {
  x=${1#f} prio=5 attempts=0 asked='' due=''
  [ "f$x" = "$1" ] || return
  case $x in *n*) due=${x#*n} x=${x%%n*}; dibs_number "$due" 11 && [ "$due" != 0 ] || return ;; esac
  case $x in *q*)
    asked=q${x#*q} x=${x%%q*} b=${asked#q}
    case $b in *r*) dibs_number "${b#*r}" 9 && [ "${b#*r}" != 0 ] || return; b=${b%%r*} ;; esac
    dibs_number "$b" 18 && [ "$b" != 0 ] || return ;;
  esac
  case $x in *p*) prio=${x##*p} x=${x%p*}; case $prio in [0-46-9]) ;; *) return 1 ;; esac ;; esac
  case $x in *a*) attempts=${x#*a} x=${x%%a*}; dibs_number "$attempts" 9 && [ "$attempts" != 0 ] || return ;; esac
  dibs_number "$x" 18 && fence=$x
}

dibs_eid() { # whether it is the correct escaped form of an id
  case $1 in '' | *[!A-Za-z0-9_=-]*) return 1 ;; esac
  [ ${#1} -le 120 ] || return
  x=$1
  while case $x in *=*) ;; *) return 0 ;; esac; do
    x=${x#*=}
    case $x in 00* | 2D* | 3[0-9]* | 4[1-9A-F]* | 5[0-9AF]* | 6[1-9A-F]* | 7[0-9A]*) return 1 ;; esac
    case $x in [0-9A-F][0-9A-F]*) ;; *) return 1 ;; esac
  done
}

dibs_claimed() { # <id>.<stamp>.<claim>
  case $1 in *.*.*.*) return 1 ;; *.*.*-*) ;; *) return 1 ;; esac
  claim=${1##*.} x=${1%.*} eid=${1%%.*}
  dibs_stamp "${x#*.}" && [ -z "$due" ] && dibs_eid "$eid" || return
  x=${claim##*-} folded=${claim%-*}
  case $folded in '' | *[!A-Za-z0-9_-]*) return 1 ;; esac
  case $x in *[!0-9A-F]*) return 1 ;; esac
  [ ${#x} = 10 ] && [ ${#folded} -le 40 ]
}

dibs_unclaimed() { # <id>[.<stamp>], or a shell worker's spelling unless STRICT
  claim='' fence=0 attempts=0 prio=5 asked='' due=''
  case $1 in
    *[!A-Za-z0-9_=.-]* | *.*.* | *.f0) ;;
    *.*) eid=${1%.*}; dibs_stamp "${1##*.}" && [ -z "$due" ] && dibs_eid "$eid" && return ;;
    *) eid=$1; dibs_eid "$eid" && return ;;
  esac
  [ -z "${2:-}" ] || return 1
  fence=0 attempts=0 prio=5 asked='' due=''
  case .$1. in ..* | *.available.* | *.claimed.* | *.free.* | *.held.* | *.lock.* | *.claimed-by-*) return 1 ;; esac
  dibs_escape "$1"
}

dibs_later() { # <id>.<stamp>
  claim=''
  case $1 in *.*.*) return 1 ;; *.*) ;; *) return 1 ;; esac
  eid=${1%.*}
  dibs_stamp "${1##*.}" && [ "$due" ] && dibs_eid "$eid"
}

dibs_read() { # any name on the board; sets state as well
  case $1 in
    *=00*) return 1 ;; # a shell cannot hold a NUL
    *.claimed-by-?*)
      state=claimed
      case ${1#*.claimed-by-} in *[!.]*) ;; *) return 1 ;; esac
      case ${1#*.claimed-by-} in *.available | *.claimed | *.free | *.held | *.lock | *.claimed-by-*) return 1 ;; esac
      case .${1%%.claimed-by-*}. in .claimed-by-* | *.available.* | *.claimed.* | *.free.* | *.held.* | *.lock.*) return 1 ;; esac
      dibs_unclaimed "${1%%.claimed-by-*}" ;;
    *.available) state=available; dibs_unclaimed "${1%.*}" ;;
    *.claimed) state=claimed; dibs_claimed "${1%.*}" || dibs_unclaimed "${1%.*}" ;;
    *.later) state=later; dibs_later "${1%.*}" ;;
    *.asked) state=asked; dibs_claimed "${1%.*}" ;;
    *.held) state=held; dibs_claimed "${1%.*}" ;;
    *.free) state=free; dibs_unclaimed "${1%.*}" strict ;;
    *) return 1 ;;
  esac
}

dibs_escape() { # TEXT to eid
  eid=$1
  case $1 in *[!A-Za-z0-9_-]*)
    text=$1 form=
    set --
    for b in $(printf %s "$text" | command od -An -v -tu1); do
      if [ "$b" = 45 ] || [ "$b" = 95 ] || { [ "$b" -ge 48 ] && [ "$b" -le 57 ]; } ||
        { [ "$b" -ge 65 ] && [ "$b" -le 90 ]; } || { [ "$b" -ge 97 ] && [ "$b" -le 122 ]; }; then
        form=$form\\$((b / 64))$((b / 8 % 8))$((b % 8))
      else
        form=$form=%02X
        set -- "$@" "$b"
      fi
    done
    # shellcheck disable=SC2059
    eid=$(printf -- "$form" "$@") ;;
  esac
  [ ${#eid} -ge 1 ] && [ ${#eid} -le 120 ]
}

dibs_unescape() { # eid to id
  x=$1 form=
  while case $x in *=*) ;; *) break ;; esac; do
    form=$form${x%%=*} x=${x#*=}
    b=$((0x${x%"${x#??}"})) x=${x#??}
    form=$form\\$((b / 64))$((b / 8 % 8))$((b % 8))
  done
  # shellcheck disable=SC2059
  id=$(printf -- "$form$x.")
  id=${id%.}
}

dibs_bare() { # FENCE ATTEMPTS PRIO, and asked: the stamp in r as it is written in a name without a claim
  dibs_full "$@"
  r=.$r
  [ "$r" != .f0 ] || r=
}

dibs_full() {
  r=f$1
  [ "$2" = 0 ] || r=${r}a$2
  [ "$3" = 5 ] || r=${r}p$3
  r=$r$asked
}

# The disk.

dibs_there() { # 0 exists, 1 does not exist, 2 unknown
  [ ! -e "./$1" ] && [ ! -L "./$1" ] || return 0
  x=$(command stat "./$1" 2>&1 > /dev/null) && return
  case $x in *'No such file'* | *'name too long'*) return 1 ;; esac
  return 2
}

dibs_why() { # TEXT: sets why, and prints it unless several tasks are tried
  why=$1
  [ "${hush:-}" ] || dibs_say "$why"
}

# Renames SRC to DST and finds out whether that happened. HOW is `keep` for a name without a nonce, which
# replaces nothing. 0 moved, 1 the disk refused, 3 DST exists, 4 SRC is gone, 5 uncertain; with STUCK, 6 if
# the disk refused only this file.
dibs_move() { # SRC DST HOW UNTIL [STUCK]
  src=$1 dst=$2 how=$3 until=$4 landed=$3
  while :; do
    here=0 there=0 rc=1 err=
    if [ "$how" != keep ] && [ -d "./$dst" ]; then # not from our rename: another user made it
      dibs_there "$src" || here=$?
      [ $here != 1 ] || return 4
      dibs_say "$dst already exists, so nothing was moved: check what it is and move it away"
      return 3
    fi
    if [ "$how" = keep ] && { [ ! -e "./$src" ] || [ -e "./$dst" ] || [ -L "./$dst" ]; }; then
      : # busybox's mv -n exits with 0 even without a source if the destination exists
    elif [ "$how" = keep ]; then err=$(command mv $dibs_T -n "./$src" "./$dst" 2>&1) && rc=0
    else err=$(command mv $dibs_T -f "./$src" "./$dst" 2>&1) && rc=0; fi
    case $err in *'No such file'* | *'not replacing'* | *'File exists'* | '') ;; *) landed=any ;; esac
    why="$src: it is unknown whether it was moved: try again: $err"
    dibs_there "$src" || here=$?
    dibs_there "$dst" || there=$?
    if [ $here = 1 ] && [ $there != 2 ]; then
      [ "$how" != keep ] || [ $rc != 0 ] || return 0
      [ $there = 0 ] && [ "$landed" = any ] && return 0
      return 4
    fi
    if [ $here = 0 ] && [ $there = 0 ] && [ "$how" = keep ]; then
      dibs_say "$dst already exists, so nothing was moved"
      return 3
    fi
    [ $there = 0 ] || [ -z "${5:-}" ] || case $err in *'not permitted'* | *' busy'* | *'too long'*)
      dibs_why "$err"
      return 6 ;;
    esac
    [ $there = 0 ] || case $err in *'ermission denied'* | *'Read-only'* | *'No space'* | *'not permitted'* | *uota* | *'too long'* | *'Not a directory'*)
      dibs_why "$err"
      return 1 ;;
    esac
    case $dst in */*) [ -e "./${dst%/*}" ] || { command mkdir "./${dst%/*}" && dibs_own "${dst%/*}"; } ;; esac
    dibs_boot
    [ "$boot" -lt "$until" ] || { dibs_why "$why"; return 5; }
    command sleep 0.05 2> /dev/null || command sleep 1
  done
}

dibs_sync() { # `strict` or `normal`, then paths; 0 if the board does not require it
  case $durability:$1 in off:* | normal:strict) return 0 ;; esac
  shift
  command sync "$@" 2> /dev/null && return
  [ -f "./$1" ] && [ ! -r "./$1" ] && command sync -f . 2> /dev/null # the complete file system
}

# TEXT as the inside of a JSON string. Bytes that are not UTF-8 become ?, or with `names` the escapes that
# Python uses for them.
dibs_json() {
  case $1 in *[!A-Za-z0-9_.:@/+=\ -]*) ;; *) r=$1; return ;; esac
  r=$(printf %s "$1" | command od -An -v -tu1 | command awk -v names="${2:-}" '
    { for (i = 1; i <= NF; i++) b[n++] = $i }
    function follows(at, count, low, high,   k) {
      if (b[at + 1] < low || b[at + 1] > high) return 0
      for (k = 2; k <= count; k++) if (b[at + k] < 128 || b[at + k] > 191) return 0
      return 1
    }
    END {
      for (at = 0; at < n; at += 1 + k) {
        c = b[at]; k = -1
        if (c < 128) k = 0
        else if (c >= 194 && c < 224) k = follows(at, 1, 128, 191) ? 1 : -1
        else if (c >= 224 && c < 240) k = follows(at, 2, c == 224 ? 160 : 128, c == 237 ? 159 : 191) ? 2 : -1
        else if (c >= 240 && c < 245) k = follows(at, 3, c == 240 ? 144 : 128, c == 244 ? 143 : 191) ? 3 : -1
        if (k < 0) { printf names ? "\\udc%02x" : "?", c; k = 0 }
        else if (c == 34 || c == 92) printf "\\%c", c
        else if (c < 32 || c == 127) printf "\\u%04x", c
        else for (j = 0; j <= k; j++) printf "%c", b[at + j] + 0
      }
    }')
}

dibs_long=33554432 # bytes after which a journal is rotated

dibs_journal() { # VERB SRC DST BY REASON [NOTE], for the task in eid; never fails, as no decision depends on it
  dibs_unescape "$eid"
  dibs_now || now=0
  line=$(printf '{"at": %d.%02d, "verb": "%s"' $((now / 100)) $((now % 100)) "$1")
  dibs_json "$id" names; line="$line, \"id\": \"$r\""
  dibs_json "$2" names; line="$line, \"src\": \"$r\", \"dst\": \"$3\""
  dibs_json "$4"; line="$line, \"by\": \"$r\""
  dibs_json "$(printf %.1000s "$5")"
  [ $((${#line} + ${#r})) -lt 3900 ] || r= # a line of several write(2) calls could be torn
  line="$line, \"reason\": \"$r\""
  [ -z "${6:-}" ] || { dibs_json "$6"; line="$line, \"note\": \"$r\""; }
  line="$line}"
  f=.dibs/journal/$tag.jsonl torn=
  r=$(command stat -c '%h %f %s' "$f" 2> /dev/null)
  case $r in
    '') (printf '%s\n' "$line" >> "$f") 2> /dev/null && dibs_own "$f"; return 0 ;;
    '1 8'???' '*) ;;
    *) return 0 ;; # not a regular file, or with a second name that may be elsewhere
  esac
  [ "${r##* }" -lt $dibs_long ] || dibs_rotate "$4" || :
  [ -z "$(command tail -c 1 "$f" 2> /dev/null)" ] || torn=$dibs_nl
  (printf '%s%s\n' "$torn" "$line" >> "$f") 2> /dev/null || :
}

dibs_rotate() ( # BY: give the journal f a number, remove all but the last three, and journal that
  series=${f%.jsonl} n=0 gone=
  for g in "$series".[1-9]*.jsonl; do
    g=${g#"$series".} g=${g%.jsonl}
    case $g in *[!0-9]* | ?????????*) ;; *) [ "$g" -le "$n" ] || n=$g ;; esac
  done
  [ "$(command stat -c %s "$f")" -ge $dibs_long ] || exit 0 # another was faster
  n=$((n + 1))
  command mv $dibs_T -n "./$f" "./$series.$n.jsonl" 2> /dev/null || exit 1
  [ -e "$series.$n.jsonl" ] || exit 1
  for g in "$series".[1-9]*.jsonl; do
    old=${g#"$series".} old=${old%.jsonl}
    case $old in *[!0-9]* | ?????????*) continue ;; esac
    [ "$old" -gt $((n - 3)) ] || ! command rm -f "./$g" || gone="$gone, $g"
  done
  [ ! "$gone" ] || gone="; ${gone#, } removed"
  dibs_json "$1"
  (printf '{"at": %d.%02d, "verb": "rotated", "id": "", "src": "%s", "dst": "", "by": "%s", "reason": "32 MiB were set aside%s"}\n' \
    $((now / 100)) $((now % 100)) "$series.$n.jsonl" "$r" "$gone" >> "$f") 2> /dev/null && dibs_own "$f"
)

# Claims.

dibs_record() { # STEM: its ttl in cttl and its line in record; 2 if the claim cannot be judged
  cttl=$ttl record=
  f=./.dibs/records/$1
  [ -f "$f" ] && [ ! -L "$f" ] || return 0
  if ! { record=$(command head -c 8193 "$f"); } 2> /dev/null; then
    dibs_there ".dibs/records/$1" && return 2
  fi
  [ ${#record} -le 8192 ] || return 0
  case $record in '{'*'"ttl":'*'}')
    x=${record#*'"ttl":'} x=${x%%[,\}]*}
    dibs_ttl "${x# }" && cttl=$r ;;
  esac
  return 0
}

dibs_facts() { # STEM: sets beat, pulse, cttl; 1 gone, 2 the claim cannot be judged
  beat=0 pulse=0 here=''
  dibs_record "$1" || return
  while IFS='|' read -r n y z yt zt; do
    case $n in *.claimed) here=1 ;; '') continue ;; esac
    dibs_centi "$z" "$zt" || return 2
    k=$r
    dibs_centi "$y" "$yt" || return 2
    # A payload's mtime shows when it was written, and counts only where a claim touches the payload.
    case $n:$ctime_moves in
      ./"$1".claimed:yes) beat=$k; dibs_nanos "$z" "$zt" ;;
      ./"$1".claimed:*) if [ "$r" -lt "$k" ]; then beat=$k; dibs_nanos "$z" "$zt"; else beat=$r; dibs_nanos "$y" "$yt"; fi ;;
      *) beat=$r; dibs_nanos "$y" "$yt" ;; # the record's mtime: links and modes change only its ctime
    esac
    pulse=$nanos
  done << EOF
$(command stat -c '%n|%Y|%Z|%y|%z' "./$1.claimed" "./.dibs/records/$1" 2> /dev/null | command tr ' ' /)
EOF
  [ ! "$here" ] || return 0
  dibs_there "$1.claimed"
  case $? in 1) return 1 ;; *) return 2 ;; esac
}

dibs_learn() { # whether a rename changes the ctime here: tried once per host, boot and device
  f=.dibs/witness/$tag.ctime ctime_moves=
  [ ! "$dibs_tag" ] || [ ! -f "$f" ] || [ -L "$f" ] || read -r ctime_moves < "$f"
  case $ctime_moves in yes | no) return ;; esac
  dibs_nonce
  (set -C; : > ".dibs/new/$nonce") 2> /dev/null || dibs_die 1 "$where/.dibs/new cannot be written: check the permissions"
  a=$(command stat -c '%Z %z' ".dibs/new/$nonce")
  for b in 1 2 3 4 5; do
    dibs_clock
    [ "$(command stat -c '%Z %z' .dibs/probe)" = "$a" ] || break
    command sleep "0.0$b" 2> /dev/null || command sleep 1
  done
  command mv -f ".dibs/new/$nonce" ".dibs/new/$nonce-" 2> /dev/null
  ctime_moves=yes
  [ "$(command stat -c '%Z %z' ".dibs/new/$nonce-")" != "$a" ] || ctime_moves=no
  command rm -f ".dibs/new/$nonce-"
  [ $ctime_moves = yes ] || dibs_compare
  [ "$dibs_tag" ] || return 0
  dibs_room
  (set -C; printf '%s\n' $ctime_moves > "$f") 2> /dev/null && dibs_own "$f"
}

dibs_room() { # each boot leaves a witness: of 512 remove the older half
  set -- .dibs/witness/*
  # shellcheck disable=SC2012
  [ $# -lt 512 ] || command ls -t .dibs/witness | command tail -n +256 | while read -r x; do
    command rm -f "./.dibs/witness/$x"
  done
}

dibs_compare() { # where a touch gives a file its only time, check that its clock is right
  dibs_boot
  before=$boot
  (set -C; : > ".dibs/new/$nonce") 2> /dev/null
  x=$(command stat -c '%Y|%y' ".dibs/new/$nonce") && dibs_centi "${x%%|*}" "${x#*|}" && age=$r &&
    dibs_touch ".dibs/new/$nonce" && x=$(command stat -c '%Y|%y' ".dibs/new/$nonce") &&
    dibs_centi "${x%%|*}" "${x#*|}" || dibs_die 1 "$where/.dibs/new cannot be written: check the permissions"
  command rm -f ".dibs/new/$nonce"
  dibs_boot
  age=$((r - age)) x=$((200 + boot - before))
  [ ${age#-} -le $x ] || dibs_die 1 "heartbeats get this host's time here, which is $((age / 100)) s off: set the clock (NTP)"
}

dibs_write_record() { # PATH
  dibs_json "$owner"; line="{\"v\": 1, \"owner\": \"$r\""
  dibs_json "$dibs_host"; line="$line, \"host\": \"$r\""
  line="$line, \"ttl\": $(printf '%d.%02d, "at": %d.%02d' $((cttl / 100)) $((cttl % 100)) $((now / 100)) $((now % 100)))"
  dibs_json "${DIBS_META:-}"
  [ -z "$r" ] || line="$line, \"metadata\": \"$r\""
  (set -C; printf '%s}\n' "$line" > "./$1") 2> /dev/null && dibs_own "$1"
}

dibs_note_known() { # ENTRY
  (set -C; : > ".dibs/known/$1") 2> /dev/null || [ -e ".dibs/known/$1" ] ||
    dibs_die 1 "$where/.dibs/known cannot be written: check the permissions"
  dibs_own ".dibs/known/$1"
}

# Claims exactly NAME, whose parts were just read. The deadline counts from before the rename. The record
# is written after it, because an older record would make a new claim look old.
dibs_take() { # NAME VERB: prints the claim and exits; returns 4 if another worker was faster, 6 if none can
  if [ "$2" = claim ] && dibs_unfit "$1"; then
    dibs_why "$1: $why"
    return 6
  fi
  if [ "$2" = claim ] && [ ! -e ".dibs/known/$eid.0" ]; then
    dibs_note_known "$eid.0"
    n=0
    while [ "$fence" != 0 ] && [ -e ".dibs/gone/$eid.$n" ]; do n=$((n + 1)); done
    [ $n = 0 ] || dibs_note_known "$eid.$n"
  fi
  x=$owner
  case $x in *[!A-Za-z0-9_-]*) x=$(printf %s "$x" | command tr -c 'A-Za-z0-9_-' -) ;; esac
  [ "$x" != dibs ] || x=dibs_
  dibs_nonce
  dibs_full $((fence + 1)) "$attempts" "$prio"
  name=$1 verb=$2 stem=$eid.$r.$(printf %.40s "$x")-$nonce
  [ "$ctime_moves" = yes ] || dibs_touch "$name"
  dibs_boot
  start=$boot limit=$((cttl * 4 / 5))
  x=500
  [ -z "$hush" ] || x=50
  [ $limit -le $x ] || limit=$x
  dibs_move "$name" "$stem.claimed" any $((start + limit)) stuck || return
  # After the rename: only this look makes the promise of a pause hold, however slow we were before it.
  here=1
  if [ "$2" = claim ]; then dibs_there .paused; here=$?; fi
  [ $here = 1 ] || ! dibs_paused || dibs_unclaim
  if ! dibs_write_record ".dibs/records/$stem"; then
    command rm -f ".dibs/records/$stem"
    dibs_bare $((fence + 1)) "$attempts" "$prio"
    dibs_move "$stem.claimed" "$eid$r.available" keep $((start + limit))
    dibs_die 1 "$where/.dibs/records cannot be written: check the permissions"
  fi
  dibs_boot
  x=$cttl
  [ "$x" -le "$ttl" ] || x=$ttl
  [ "$boot" -lt $((start + x * 4 / 5)) ] || dibs_die 5 "$stem: claiming it took longer than its lease; stop"
  dibs_journal "$verb" "$name" "$stem.claimed" "$owner" "${DIBS_META:-}"
  dibs_sync strict .
  [ "$verb" = claim ] || command rm -f "./.dibs/records/${name%.claimed}" "./.dibs/notes/${name%.claimed}"
  dibs_answer "$stem" $((start + cttl * 4 / 5))
}

# Whether new claims are paused on this host; says so in text. Only a missing name means that they are not.
dibs_paused() {
  text="the pauses in $where/.paused cannot be read" code=1
  dibs_there .paused || { [ $? != 1 ]; return; }
  [ -d .paused ] && [ ! -L .paused ] || return 1
  x=$(command ls -A .paused 2> /dev/null) || { [ -d .paused ]; return; }
  for f in $x; do
    case ${#f}$f in 10*[!0-9A-F]*) continue ;; 10*) ;; *) continue ;; esac
    f=.paused/$f
    [ -f "$f" ] && [ ! -L "$f" ] || continue
    data=$(command head -c 8193 "./$f" 2> /dev/null) || { [ -e "./$f" ] || continue; return 0; }
    case $data in *'"v": 1'*) ;; *) continue ;; esac
    y=$(printf %s "$data" | command sed -n 's/.*[,{] *"until" *: *\([0-9]*\).*/\1/p')
    [ -z "$y" ] || ! dibs_number "$y" 12 || ! dibs_now || [ "$now" -lt $((y * 100 + 100)) ] || continue
    dibs_field host
    # shellcheck disable=SC2254
    [ -z "$r" ] || case $dibs_host in $r) ;; *) continue ;; esac
    text="the board is paused" code=14
    [ -z "$r" ] || text="host $r is paused"
    dibs_field by; text="$text by $r"
    dibs_field reason; text="$text: $r"
    text=$(printf %.300s "$text" | command tr -c ' -~' '?')
    return 0
  done
  return 1
}

dibs_field() { # KEY: a text in data, up to its first quote or backslash
  r=$(printf %s "$data" | command sed -n 's/.*[,{] *"'"$1"'" *: *"\([^"\\]*\).*/\1/p')
}

# Makes the task that was just claimed available again, under its new fence: the old name may be claimed
# by a process that saw it earlier.
dibs_unclaim() {
  dibs_bare $((fence + 1)) "$attempts" "$prio"
  if dibs_move "$stem.claimed" "$eid$r.available" keep $((start + limit)); then dibs_wait; fi
  dibs_die 5 "$stem: $text, and it could not be requeued; it will expire"
}

dibs_wait() { # says that claims are paused, and ends
  [ "$code" = 14 ] || dibs_die 1 "$text"
  printf '%s\n' "$text"
  exit 14
}

dibs_try() { # claim it and exit, or return if another worker was faster
  dibs_take "$@"
  code=$?
  case $code in 4) ;; 6) exit 1 ;; *) exit $code ;; esac
}

dibs_unfit() { # NAME, just read: whether no worker here can claim it; the reason in why
  if [ -L "./$1" ]; then why="it is a link: move it away"
  elif [ -d "./$1" ]; then why="it is a folder: move it away"
  elif [ ! -e "./$1" ]; then return 1
  elif [ ! -f "./$1" ]; then why="it is not a file: move it away"
  elif [ ! -r "./$1" ]; then why="this user cannot read it: chmod +r it, or claim it as another user"
  elif [ "$fence" = 999999999999999999 ]; then why="its fence is as high as a name can hold: use another id"
  else return 1; fi
}

dibs_answer() {
  dibs_unescape "$eid"
  printf '%s\n%s\n%s/./\n%s.\n' "$1" "$2" "$PWD" "$id"
  exit 0
}

dibs_terms() { # what is needed before a claim
  dibs_learn
  dibs_clock
  dibs_fits "${DIBS_META:-}" 1024 || dibs_die 2 "DIBS_META has more than 1024 characters: shorten it"
}

dibs_find() { # EID: every name of it on the board; their number in found, the last one in name
  dibs_unescape "$1"
  want=$1 found=0
  set -- "$1".*
  case $id in "$want" | */*) ;; *) set -- "$@" "$id".* ;; esac
  for m in "$@"; do
    if [ -e "./$m" ] || [ -L "./$m" ]; then
      dibs_read "$m" && [ "$eid" = "$want" ] && found=$((found + 1)) && name=$m
    fi
  done
  eid=$want
}

dibs_claim() { # [--resume] ID
  resume=
  [ "${1:-}" != --resume ] || { resume=1; shift; }
  [ "${1:-}" != -- ] || shift
  [ $# = 1 ] && [ "$1" ] && dibs_escape "$1" || dibs_die 2 "give one id, of 1 to 120 bytes in its escaped form"
  want=$eid round=0 mine=$cttl
  dibs_terms
  while [ $((round = round + 1)) -le 20 ]; do
    dibs_find "$want"
    if [ $found != 1 ]; then
      [ $round -gt 2 ] || continue # a listing misses or doubles what is being renamed
      [ $found = 0 ] || dibs_die 3 "$1 has two names, so no worker can claim it: keep one of them"
      dibs_die 3 "$1 is not available on this board"
    fi
    dibs_read "$name" && cttl=$mine
    case $state in
      available)
        [ ! -e .paused ] || ! dibs_paused || dibs_wait
        dibs_try "$name" claim
        continue ;;
      later)
        [ ! -e .paused ] || ! dibs_paused || dibs_wait
        dibs_is_due || dibs_die 4 "$1 starts in $((due - now / 100)) s"
        dibs_try "$name" claim
        continue ;;
      asked) dibs_die 4 "$1 waits for a person's answer" ;;
      free | held) dibs_die 2 "$1 is a lock: use dibs acquire" ;;
    esac
    [ "$claim" ] && [ "$folded" != dibs ] || dibs_die 4 "$1 is held by a shell worker"
    stem=${name%.claimed}
    if [ "$stem" = "${DIBS_CLAIM:-}" ]; then
      [ "$resume" ] || { beat=$(dibs_beat "$stem" "" 2> /dev/null) && dibs_answer "$stem" "${beat#* }"; }
      dibs_try "$name" resume
      continue
    fi
    dibs_judge "$stem" && judged=0 || judged=$?
    [ "$judged" != 1 ] || continue
    if [ "$judged" = 0 ] && [ "$resume" ] && dibs_json "$owner" && [ "$r" ] &&
      case $record in *"\"owner\": \"$r\""*) ;; *) false ;; esac; then
      cttl=$mine
      dibs_read "$name" && dibs_try "$name" resume
    elif [ "$judged" = 0 ]; then
      dibs_requeue "$stem"
      code=$?
      [ $code = 0 ] || [ $code = 4 ] || exit $code
    else
      dibs_die 4 "$1 is held as $stem, $msg"
    fi
  done
  dibs_die 4 "$1: other workers were always faster: try again"
}

# The next task: by priority, then by name. Claimants that collide spread out: after two losses they go on
# some slices of 64 further down, and come back when nothing is left there. No name is tried twice. A task
# that cannot be claimed is passed over. A later task is taken when it is due; if a janitor has made it
# available in between, it is taken as that. An error that may be the disk's ends the search only if nothing
# else could be claimed.
dibs_next() {
  mine=$cttl
  dibs_terms
  [ ! -e .paused ] || ! dibs_paused || dibs_wait
  dibs_boot
  chance=$(($$ * 7919 + boot)) reaped='' begun=$boot tried=/ trouble='' hush=1
  while :; do
    losses=0 skipped=
    set -- *[el][er] # .available and .later, in one order
    dibs_now || now=0
    for p in 9 8 7 6 5 4 3 2 1 0; do
      skip=0
      for n in "$@"; do
        case $n in *.available | *.later) x=${n%.*} ;; *) continue ;; esac
        case $x in *.f*p[0-46-9] | *.f*p[0-46-9][nq]*) x=${x##*p} x=${x%%[nq]*} ;; *) x=5 ;; esac
        [ "$x" = $p ] || continue
        [ $skip = 0 ] || { skip=$((skip - 1)) skipped=1; continue; }
        case $tried in */"$n"/*) continue ;; esac
        dibs_read "$n" && ! dibs_unfit "$n" || continue
        [ "$state" != later ] || dibs_is_due || continue
        dibs_find "$eid"
        [ $found = 1 ] && [ "$name" = "$n" ] && dibs_read "$n" || continue
        cttl=$mine
        dibs_take "$n" claim
        code=$? tried=$tried$n/
        if [ $code = 4 ] && dibs_read "$n" && [ "$state" = later ]; then
          dibs_bare "$fence" "$attempts" "$prio"
          dibs_read "$eid$r.available" && dibs_take "$eid$r.available" claim
          code=$?
        fi
        case $code in 4) ;; 6) continue ;; *)
          trouble=$code
          dibs_boot
          [ "$boot" -lt $((begun + 500)) ] || dibs_die "$code" "$why"
          continue ;;
        esac
        losses=$((losses + 1)) chance=$(((chance * 1103515245 + 12345) & 2147483647))
        [ $((losses % 2)) = 1 ] || skip=$((chance / 65536 % 8 * 64))
      done
    done
    if [ -z "$skipped" ]; then
      if [ "$reaped" ] || [ -z "$(dibs_reap 2> /dev/null)" ]; then
        [ -z "$trouble" ] || dibs_die "$trouble" "$why"
        exit 4
      fi
      reaped=1
    fi
  done
}

# CLAIM, or nothing, or the id of DIBS_CLAIM: sets stem to the exact claim and reads its parts.
dibs_mine() {
  stem=${1:-${DIBS_CLAIM:-}}
  stem=${stem%.claimed}
  dibs_claimed "$stem" && [ "$folded" != dibs ] && return
  if [ "$stem" ] && dibs_escape "$stem"; then
    want=$eid stem=${DIBS_CLAIM:-}
    dibs_claimed "$stem" && [ "$eid" = "$want" ] && return
  fi
  dibs_die 2 "'$1' is not the exact name of a claim, and DIBS_CLAIM has none with that id"
}

dibs_lost() { # VERB: journals for operators that a lost claim was used, and exits
  # If this is a heartbeat that process_loop has stopped, the loop itself has ended the claim.
  [ -z "${dibs_beater:-}" ] || [ -e "/proc/$dibs_beater" ] || exit 5
  [ "${DIBS_OWNER:-}" ] || owner=$folded
  dibs_journal refused "$stem" "" "$owner" "$1"
  dibs_die 5 "$stem is no longer yours; stop"
}

# Until when the lease runs for its owner. Without a deadline in memory the age is read from the disk; also
# after the deadline, because another process with this claim may have beaten it.
dibs_until() { # LEASE VERB
  dibs_boot
  start=$boot until=${1#"$stem "} part=5
  if [ "$until" != "$1" ]; then
    part=4
    [ "$start" -ge "$until" ] || { dibs_record "$stem"; return 0; }
  fi
  dibs_learn
  dibs_facts "$stem"
  case $? in 1) dibs_lost "$2" ;; 2) dibs_die 5 "$stem: the disk does not answer; stop" ;; esac
  dibs_clock
  age=$((now - beat))
  [ $age -ge 0 ] || age=0
  limit=$((cttl * part / 5))
  [ $((age + fuzz)) -le $limit ] || dibs_die 5 "$stem: its lease was not renewed in time; stop"
  until=$((start + limit - age))
}

dibs_verify() { # CLAIM LEASE
  dibs_mine "$1"
  dibs_until "$2" verify
  dibs_there "$stem.claimed"
  case $? in 0) ;; 1) dibs_lost verify ;; *) dibs_die 5 "$stem: the disk does not answer; stop" ;; esac
}

dibs_beat() { # CLAIM LEASE: prints the new lease
  dibs_mine "$1"
  dibs_until "$2" beat
  f=.dibs/records/$stem
  while :; do
    beaten=
    dibs_touch "$f" && [ -e "./$f" ] && beaten=1
    dibs_there "$stem.claimed"
    case $? in
      1) dibs_lost beat ;;
      0) [ -z "$beaten" ] || break
        [ -e "./$f" ] || [ -L "./$f" ] || {
          [ "${DIBS_OWNER:-}" ] || owner=$folded
          dibs_now || now=0
          dibs_nonce
          dibs_write_record "$f.$nonce" && command mv $dibs_T -f "./$f.$nonce" "./$f" 2> /dev/null && continue
        } ;;
    esac
    dibs_boot
    [ "$boot" -lt "$until" ] || break
    command sleep 0.05 2> /dev/null || command sleep 1
  done
  dibs_boot
  [ "$boot" -lt "$until" ] || dibs_die 5 "$stem: its lease could not be renewed in time; stop"
  printf '%s %s\n' "$stem" $((start + cttl * 4 / 5)) 2> /dev/null
}

dibs_end() { # VERB CLAIM REASON [DELAY]
  dibs_mine "$2"
  delay=''
  if [ "${4:-}" ]; then
    dibs_delay "$4" || dibs_die 2 "'$4' is not a time of up to a day: give seconds, or 5m"
    delay=$r
  fi
  if [ "$1" = "done" ]; then
    if [ -f "./$stem.claimed" ] && ! dibs_sync normal "./$stem.claimed" && [ -e "./$stem.claimed" ]; then
      dibs_die 1 "$stem could not be made durable, so it is not done: try again"
    fi
    dst=done/$stem
  elif [ "$1" = fail ]; then
    dibs_now || now=0
    dibs_failed "$now"
  else
    dibs_now || now=0
    dibs_waits "${delay:-0}" "$now"
  fi
  [ "${DIBS_OWNER:-}" ] || owner=$folded
  dibs_ended "$1" "$dst" "$owner" "$3"
  code=$?
  [ $code != 4 ] || dibs_lost "$1"
  exit $code
}

dibs_failed() { # SINCE: the name that a failed or expired claim gets, in dst
  [ "$attempts" = 999999999 ] || attempts=$((attempts + 1))
  if [ "$attempts" -ge "$max_attempts" ]; then
    dibs_full "$fence" "$attempts" "$prio"
    dst=failed/$eid.$r.$claim
  else
    if [ -z "${delay:-}" ]; then
      delay=0 n=0
      for x in $retry; do
        delay=$x n=$((n + 1))
        [ $n -lt "$attempts" ] || break
      done
      # A tenth less to a tenth more, so that a herd spreads.
      [ "$delay" = 0 ] || { dibs_nonce; delay=$((delay * (900 + 0x$nonce % 201) / 1000)); }
    fi
    dibs_waits "$delay" "$1"
  fi
}

dibs_waits() { # DELAY SINCE: the name in dst of a task that starts after that delay, in hundredths
  dibs_bare "$fence" "$attempts" "$prio"
  x=$2
  [ "$x" -le "$now" ] || x=$now
  x=$((x + $1))
  if [ "$x" -le "$now" ] || [ "$now" = 0 ]; then dst=$eid$r.available
  else
    dibs_full "$fence" "$attempts" "$prio"
    dst=$eid.${r}n$(((x + 99) / 100)).later
  fi
}

dibs_is_due() { # whether the later task that was just read may start by the clock in now
  [ $((due * 100)) -le "$now" ] || { [ "$attempts" != 0 ] && [ $((due * 100)) -gt $((now + 10000000)) ]; }
}

dibs_ended() { # VERB DST BY REASON: the one rename that ends the claim in stem
  case $2 in */*) how=any folder=${2%/*} need=normal ;; *) how=keep folder='' need=strict ;; esac
  dibs_boot
  dibs_move "$stem.claimed" "$2" $how $((boot + 500)) || return
  # Found at DST without a record: an earlier call has moved it and journalled it.
  again=1
  [ "$how" = any ] && [ "$rc" != 0 ] && [ ! -e "./.dibs/records/$stem" ] || again=
  command rm -f "./.dibs/records/$stem"
  dibs_last_note "$stem"
  [ "$again" ] || dibs_journal "$1" "$stem.claimed" "$2" "$3" "$4" "$note"
  # shellcheck disable=SC2086
  dibs_sync $need $folder . || dibs_die 5 "$stem: the step is done, but could not be made durable: a power loss may undo it"
}

# Notes: what the work is doing now, for operators. A note is no heartbeat.

dibs_note() { # TEXT: of the claim in DIBS_CLAIM
  dibs_mine ""
  set -f
  # shellcheck disable=SC2086
  set -- $1
  set +f
  note="$*"
  dibs_fits "$note" 200 || dibs_die 2 "a note must have at most 200 characters: shorten it"
  f=./.dibs/notes/$stem
  if [ -z "$note" ]; then
    command rm -f "$f"
  else
    [ -d .dibs/notes ] || { command mkdir .dibs/notes 2> /dev/null && dibs_own .dibs/notes; } || :
    [ -d .dibs/notes ] && [ ! -L .dibs/notes ] ||
      dibs_die 1 ".dibs/notes is not a real folder: replace it"
    dibs_nonce
    { (printf '%s\n' "$note" > "./.dibs/new/$nonce") 2> /dev/null && dibs_own ".dibs/new/$nonce" &&
      command mv $dibs_T -f "./.dibs/new/$nonce" "$f" 2> /dev/null; } ||
      { command rm -f "./.dibs/new/$nonce"; dibs_die 1 "$f: the note could not be written"; }
  fi
  # Looked for afterwards: whoever ended the claim removed the note that was there then.
  dibs_there "$stem.claimed"
  [ $? != 1 ] || { command rm -f "$f"; dibs_lost note; }
}

dibs_last_note() { # STEM: the last note of a claim that has ended, removed from its place; in note
  note='' f=./.dibs/notes/$1
  [ -f "$f" ] && [ ! -L "$f" ] || return 0
  note=$({ command head -c 800 "$f" | command tr -d '\000' | command tr '\n\t\r' '   '; printf x; } 2> /dev/null)
  note=${note%x} note=${note% }
  command rm -f "$f"
}

# Reaping: a claim is stale if it is past its ttl by the file system's clock, and if looks prove it, which
# are shared with dibs: one boot saw it with the same times for 0.8 of its ttl; or callers of any boots
# for 1.5 of its ttl by the board's clock, where no gap counts for more than a quarter of the ttl.

dibs_reap() {
  dibs_learn
  for n in *.*.*-*.claimed; do
    [ -e "./$n" ] && dibs_claimed "${n%.claimed}" && [ "$folded" != dibs ] || continue
    stem=${n%.claimed}
    dibs_judge "$stem" && dibs_requeue "$stem" && printf '%s\n' "$dst"
  done
  for f in .dibs/looks/*.*.*-*; do
    stem=${f#.dibs/looks/}
    [ -e "./$stem.claimed" ] || [ -e "./$stem.held" ] || ! dibs_claimed "$stem" || command rm -f "./$f"
  done
  for f in .dibs/notes/*.*.*-*; do
    stem=${f#.dibs/notes/}
    [ -e "./$stem.claimed" ] || [ -e "./$stem.held" ] || ! dibs_claimed "$stem" || command rm -f "./$f"
  done
  dibs_now || return 0
  for n in *.later; do
    dibs_read "$n" && dibs_is_due || continue
    dibs_bare "$fence" "$attempts" "$prio"
    dst=$eid$r.available
    dibs_boot
    dibs_move "$n" "$dst" keep $((boot + 500)) || continue
    dibs_user
    dibs_journal due "$n" "$dst" "$r" ""
    dibs_sync strict .
    printf '%s\n' "$dst"
  done
}

dibs_user() { # who this is, in r
  r=${USER:-${LOGNAME:-$(command id -un 2> /dev/null)}}
  r=${r:-$(command id -u)}@$dibs_host
}

dibs_sweep() { # AFTER: reap if it is time, and print when the next time is
  dibs_boot
  [ "$boot" -ge "$1" ] || { printf '%s\n' "$1"; return; }
  after=$((boot + ttl / 4))
  dibs_reap > /dev/null 2>&1
  printf '%s\n' $after
}

dibs_show() { # [NAME]: touch the file of a worker that waits, or create it; prints its name
  name=$1
  if [ ! "$name" ]; then
    x=$(printf %s "$owner" | command tr -c 'A-Za-z0-9_-' -)
    [ "$x" != dibs ] || x=dibs_
    dibs_nonce
    name=$(printf %.40s "$x")-$nonce
  fi
  printf '%s\n' "$name"
  f=.dibs/waiting
  [ -d $f ] || { command mkdir $f 2> /dev/null && dibs_own $f; }
  [ -d $f ] && [ ! -L $f ] || return 0
  [ -e "$f/$name" ] && dibs_touch "$f/$name" && return
  dibs_now || now=0
  dibs_json "$owner"; line="{\"v\": 1, \"owner\": \"$r\""
  dibs_json "$dibs_host"; line="$line, \"host\": \"$r\", \"state\": \"idle\""
  line="$line, \"at\": $(printf '%d.%02d' $((now / 100)) $((now % 100)))}"
  (set -C; printf '%s\n' "$line" > "./$f/$name") 2> /dev/null && dibs_own "$f/$name"
  return 0
}

dibs_hide() { # NAME: the worker waits no longer
  [ -L .dibs/waiting ] || command rm -f "./.dibs/waiting/$1"
}

dibs_watched() { # STEM: for how long it was seen with these times, in nanoseconds: own, shared
  own=0 shared=0 top='' ours='' lines=0 data='' f=./.dibs/looks/$1
  [ -f "$f" ] && [ ! -L "$f" ] || { dibs_beyond "$nowns"; top=; return; }
  data=$({ command head -c 8192 "$f"; printf x; } 2> /dev/null)
  data=${data%"${data##*"$dibs_nl"}"} # without a torn tail
  while read -r k b n y x; do
    [ "$y" = "$pulse" ] && [ -z "$x" ] && dibs_number "$b" 18 && dibs_number "$n" 19 || continue
    case $k:$n in *[!A-Za-z0-9]*:* | *:9??????????????????) continue ;; esac
    if [ "$k" = "$dibs_key" ]; then
      [ "$b" -le "$before" ] || continue
      ours=1 x=$((before - b))
      i=$((nowns - n - x)) # both clocks must agree: a clone has this boot id but another clock
      [ $i -ge 0 ] || x=$((x + i))
      [ ${i#-} -gt $((cttl * 1500000)) ] || [ $x -le $own ] || own=$x
    fi
    lines=$((lines + 1))
    dibs_beyond "$n"
  done << EOF
$data
EOF
  x=$top
  dibs_beyond "$nowns"
  top=$x
}

dibs_beyond() { # TIME: counts what exceeds the highest time so far, at most a quarter of the ttl
  if [ -z "$top" ]; then top=$1 shared=0
  elif [ "$1" -lt $((top - skew)) ]; then top='' shared=0
  elif [ "$1" -gt "$top" ]; then
    i=$(($1 - top)) top=$1
    [ $i -le $((cttl * 2500000)) ] || i=$((cttl * 2500000))
    shared=$((shared + i))
  fi
}

dibs_keep_look() { # STEM, just judged: append a look if it adds information
  dibs_boot
  dibs_clock
  [ -z "$top" ] || [ "$nowns" -ge $((top + cttl * 625000)) ] || [ "$nowns" -lt $((top - skew)) ] ||
    { [ -z "$ours" ] && [ "$lines" -lt 32 ]; } || return 0
  f=./.dibs/looks/$1 line="$dibs_key $((boot + 1))0000000 $nowns $pulse"
  if [ -e "$f" ] || [ -L "$f" ]; then # a second name of the file may be elsewhere
    x=$(command stat -c '%h %s' "$f" 2> /dev/null)
    [ -f "$f" ] && [ ! -L "$f" ] && [ "${x% *}" = 1 ] || return 0
    if [ $((${x#* } + ${#line})) -gt 8190 ]; then
      line=$(printf %s "$data" | command grep -e " $pulse\$" | command tail -n 32)$dibs_nl$line
      command rm -f "$f"
    elif [ "$(command tail -c 1 "$f")" ]; then line=$dibs_nl$line; fi
    (printf '%s\n' "$line" >> "$f") 2> /dev/null || :
  else
    (printf '%s\n' "$line" >> "$f") 2> /dev/null && dibs_own "$f"
  fi
}

dibs_judge() { # STEM: 0 stale, 1 gone, 2 cannot be judged, 4 not yet; the reason in msg
  msg="and its record cannot be read: try again"
  dibs_boot
  before=${boot}0000000
  dibs_clock # before the claim is read, so that no beat can be missed in between
  dibs_facts "$1" || return
  unbeaten=$((now - beat - fuzz)) skew=$((cttl * 500000))
  [ $skew -le 2000000000 ] || skew=2000000000
  if [ $((beat - now)) -gt 200 ]; then # its age is unknown: only looks count
    unbeaten=0 wait=$((cttl * 10000000 + 2000000000)) x=2000000000 msg="its last heartbeat is in the future"
  elif [ $unbeaten -le "$cttl" ]; then
    msg="for $(((cttl - unbeaten) / 100 + 1)) s more unless it beats"
    return 4
  else
    wait=$((cttl * 8000000)) x=0 msg="and its lease has expired"
  fi
  [ $((nowns % 1000000000)) != 0 ] || x=$((x + 2000000000))
  age=$((cttl * 15000000 + x))
  dibs_watched "$1"
  wait=$((wait + fuzz * 10000000 - own)) age=$((age - shared))
  [ $wait -le $age ] || wait=$age
  [ $wait -gt 0 ] || return 0
  [ $wait -le $((cttl * 2500000)) ] || wait=$((cttl * 2500000))
  msg="$msg: try again in $((wait / 1000000000 + 1)) s"
  dibs_keep_look "$1"
  return 4
}

dibs_requeue() { # STEM, just judged
  stem=$1
  dibs_claimed "$stem"
  delay=''
  dibs_failed "$beat"
  dibs_user
  dibs_ended reap "$dst" "$r" \
    "no heartbeat for $((unbeaten / 100)) s, ttl $((cttl / 100)) s" || return
  command rm -f "./.dibs/looks/$stem"
}
