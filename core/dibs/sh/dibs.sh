# shellcheck shell=sh disable=SC2015
# dibs.sh: work on a dibs board from any POSIX shell; source it. No Python is needed.
#
#   claim_task [--resume] ID    take that task        next_task         take the next one
#   heartbeat [CLAIM]           say it goes on        verify_ownership [CLAIM]
#   done_task [CLAIM]           commit it             fail_task [CLAIM [REASON]]
#   release_task [CLAIM]        finished, too     return_task [CLAIM [REASON]]  give it back
#   reap_stale                  give back what fell silent
#   process_loop HANDLER [ARG...]   take, run, beat, commit, until nothing waits
#
# DIBS_DIR is the board (default .), DIBS_OWNER who claims (the host's name), DIBS_TTL the lease in
# seconds (the board's, else 120), DIBS_META a text for operators. A claim prints its exact name and
# exports DIBS_CLAIM (that name), DIBS_ID, DIBS_FENCE and DIBS_PAYLOAD (the file). CLAIM is that
# name, or the id of $DIBS_CLAIM; $DIBS_CLAIM without it. In $( ) only the name survives: assign it
# to DIBS_CLAIM. process_loop commits on exit code 0 of its handler and fails the task on any other;
# with DIBS_POLL=SECONDS it waits for more. A caller's `set -e` holds in the handler, unless the loop
# itself is called in a condition. A handler whose claim is lost is not stopped, but cannot commit:
# verify_ownership tells it. release_task commits, because that is what it means in the fleets that
# this file replaces: they `rm` their claims when they are done.
#
# Exit codes: 0 done, 1 the disk refused, 2 bad input, 3 refused, 4 nothing to take or held,
# 5 lost or uncertain: stop working.
#
# Restarted? Call claim_task again: it looks at the disk. With its name in DIBS_CLAIM a live claim
# is beaten and stays the same; one past its ttl is taken anew under a higher fence. An owner's text
# proves nothing, as two agents may share it: without the name the claim is held (4) until it is
# stale. Then claim_task reaps it, which counts an attempt, or with --resume takes one's own anew;
# with the name --resume does so at any time and so stops the old self.
#
# Each change is one rename of an exact name, and names, not mv's exit code, tell what became of it.
# For names without a nonce `mv -n` asks the kernel for RENAME_NOREPLACE in new coreutils; older ones
# and busybox only look first, and their exit codes for a skip differ. mv copies across mounts: a
# board lies on one. Left to dibs proper: locks, plain claims and their takes, and claims whose
# process is dead but whose ttl still runs.

dibs_nl='
'
dibs_host=$(command uname -n) dibs_gid=$(command id -g)
dibs_host=${dibs_host:-localhost}
# What rests on this boot's clock goes by it and its time namespace, as with dibs, and not by the host's
# name; where the boot id is hidden nothing is shared, and the journal alone goes by that name.
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
fail_task() { dibs_do end fail "${1:-}" "${2:-}"; }
reap_stale() { dibs_do reap; }

release_task() { dibs_do end "done" "${1:-}" ""; }
return_task() { dibs_do end release "${1:-}" "${2:-}"; }

heartbeat() {
  dibs_out=$(dibs_do beat "${1:-}" "${dibs_lease:-}") || return
  dibs_lease=$dibs_out
}

process_loop() {
  [ $# -gt 0 ] || { dibs_say "process_loop needs a handler"; return 2; }
  dibs_sweep=0
  while :; do
    dibs_rc=0
    dibs_out=$(dibs_do sweep "$dibs_sweep") && dibs_sweep=$dibs_out
    next_task > /dev/null || dibs_rc=$?
    case $dibs_rc in
      0)
        # shellcheck disable=SC3041
        case $- in *E*) set +E; dibs_work "$@"; set -E ;; *) dibs_work "$@" ;; esac
        case $dibs_rc in 0 | 3 | 5) ;; *) return 1 ;; esac ;;
      4) [ "${DIBS_POLL:-}" ] || return 0; command sleep "$DIBS_POLL" || return 2 ;;
      5) ;;
      *) return "$dibs_rc" ;;
    esac
  done
}

# The heartbeats run beside the handler. They end by their pid, with the claim, or when the loop is
# gone, so that nobody beats for a dead worker. SIGKILL, because the caller may ignore the others.
# The handler is no part of a condition: `set -e` would do nothing in it. The answer is in dibs_rc.
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

# Short naps: what is killed leaves one behind. Files that the caller holds open may be its locks.
dibs_beats() {
  set +eu
  dibs_fresh
  unset IFS
  exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
  dibs_lease=$2
  while :; do
    dibs_boot
    dibs_next=$(((${dibs_lease#* } - boot) * 5 / 12)) # a third of the ttl, or of what is left of it
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

# Runs a claiming verb; its answer is the claim, its deadline, the id, and where the board is.
dibs_keep() {
  dibs_out=$(dibs_do "$@") || return
  DIBS_CLAIM=${dibs_out%%"$dibs_nl"*} dibs_out=${dibs_out#*"$dibs_nl"}
  dibs_lease="$DIBS_CLAIM ${dibs_out%%"$dibs_nl"*}" dibs_out=${dibs_out#*"$dibs_nl"}
  DIBS_PAYLOAD=${dibs_out%%"/./$dibs_nl"*} DIBS_ID=${dibs_out#*"/./$dibs_nl"}
  DIBS_PAYLOAD=$DIBS_PAYLOAD/$DIBS_CLAIM.claimed DIBS_ID=${DIBS_ID%.}
  DIBS_FENCE=${DIBS_CLAIM#*.f} DIBS_FENCE=${DIBS_FENCE%%[!0-9]*}
  export DIBS_CLAIM DIBS_ID DIBS_FENCE DIBS_PAYLOAD
  printf '%s\n' "$DIBS_CLAIM"
}

dibs_say() { printf 'dibs: %s\n' "$*" >&2; }
dibs_die() { dibs_code=$1; shift; dibs_say "$*"; exit "$dibs_code"; }

# Frees a subshell of what its caller made of the short names used here, and of bash's own turns.
dibs_fresh() {
  unset -v a after again age attempts b beat beaten before begun boot chance claim code ctime_moves cttl \
    data dst durability e eid err f fence folded folder form found fuzz g gone group here how hush i id \
    judged k key landed limit line lines losses m max_attempts mine n name nanos need nonce now nowns \
    old ours own owner p part prio probe pulse r rc reaped record resume round said salt series shared silent skew \
    skip skipped src start state stem tag text there top torn tried trouble ttl until value verb wait \
    want where why x y yt z zt ||
    dibs_die 2 "a readonly variable of yours has a name that dibs.sh uses within: give it another"
  # shellcheck disable=SC3044,SC3047
  [ -z "${BASH_VERSION:-}" ] || { shopt -u failglob nocasematch; trap - ERR; unset -v GLOBIGNORE; }
}

# Everything below runs in a subshell of its own, in the board's directory and in the C locale.
dibs_do() (
  set +eufC
  dibs_fresh
  IFS=" $(printf '\t')$dibs_nl" LC_ALL=C
  export LC_ALL
  unset CDPATH
  dibs_open
  dibs_verb=$1
  shift
  "dibs_$dibs_verb" "$@"
)

dibs_open() {
  where=${DIBS_DIR:-.}
  case $where in /*) ;; *) where=./$where ;; esac
  command cd "$where" > /dev/null 2>&1 || dibs_die 1 "$where: no such directory: give the one with the tasks"
  dibs_settings
  cttl=$ttl
  [ -z "${DIBS_TTL:-}" ] || { dibs_ttl "$DIBS_TTL" || dibs_die 2 "DIBS_TTL must be 1 to 86400 seconds"; cttl=$r; }
  owner=${DIBS_OWNER:-$dibs_host}
  case $owner in *[[:cntrl:]]*) dibs_die 2 "DIBS_OWNER holds a control character" ;; esac
  dibs_fits "$owner" 256 || dibs_die 2 "DIBS_OWNER has more than 256 characters"
  # shellcheck disable=SC2046
  set -- $(command stat -c '%a %g %D' . 2> /dev/null)
  [ $# = 3 ] && dibs_boot && [ $((1 << 40)) -gt 0 ] || dibs_die 1 "this needs stat -c, /proc/uptime and 64-bit numbers"
  command umask "$(printf %04o $((~0$1 & 0777)))"
  tag=$dibs_named-$3 group=$2
  case $1:$2 in [2367]???:* | *:"$dibs_gid") group= ;; esac
  # A file makes it a board of format 2; in format 1 it is the folder of the records.
  [ ! -d .dibs/claims ] || [ -L .dibs/claims ] ||
    dibs_die 1 "this board has format 1, of an earlier dibs: stop its workers, then upgrade it: dibs upgrade"
  for f in .dibs "done" failed .dibs/records .dibs/known .dibs/gone .dibs/new .dibs/past .dibs/plain \
    .dibs/aside .dibs/witness .dibs/looks .dibs/journal .dibs/free; do
    [ "$f" != .dibs/known ] || [ -d $f ] || [ ! -e .dibs/claims ] ||
      dibs_die 1 "$f was lost: dibs check --repair finds out which ids were used"
    [ "$f" != .dibs/known ] || [ -d $f ] || ! dibs_used || dibs_note_lost
    if [ -L "$f" ] || { [ -e "$f" ] && [ ! -d "$f" ]; }; then dibs_die 1 "$f is not a folder of its own"; fi
    [ -d "$f" ] || { command mkdir "$f" 2> /dev/null && dibs_own "$f"; } || [ -d "$f" ] ||
      dibs_die 1 "$where/$f cannot be made"
  done
  f=.dibs/claims
  [ -f "$f" ] || { (set -C; : > "$f") 2> /dev/null && dibs_own "$f"; }
  [ -f "$f" ] && [ ! -L "$f" ] || dibs_die 1 "$where/$f is not a file of the board's own"
}

dibs_used() { # whether names that only dibs makes are here: .dibs was lost
  for x in *.f[0-9]*.*; do
    dibs_read "$x" && [ "$claim$fence$attempts$prio" != 005 ] && return
  done
  for x in "done"/*.f[0-9]*.* failed/*.f[0-9]*.*; do
    dibs_claimed "${x##*/}" && return
  done
  return 1
}

dibs_note_lost() { # .dibs/known comes back with a note, so that dibs adds no id twice
  dibs_nonce
  x=$f.$nonce
  command mkdir "$x" && dibs_own "$x" && : > "$x/lost" && dibs_own "$x/lost" && command mv -n "$x" "$f" ||
    dibs_die 1 "$where/$f cannot be made"
  x=$f/${x##*/}
  [ ! -d "$x" ] || { command rm -f "$x/lost" && command rmdir "$x"; } # another was faster
}

dibs_fits() { # TEXT, and how many characters it may have
  [ ${#1} -le "$2" ] || [ "$(printf %s "$1" | command tr -d '\200-\277' | command wc -c)" -le "$2" ]
}

dibs_own() { [ -z "$group" ] || command chgrp "$group" "./$1" 2> /dev/null || :; }

# board.toml, as dibs writes it; of what it cannot read a worker stays away.
dibs_settings() {
  ttl=12000 max_attempts=5 durability=normal
  f=.dibs/board.toml
  [ -e "$f" ] || [ -L "$f" ] || return 0
  [ -f "$f" ] && [ ! -L "$f" ] && [ -r "$f" ] || dibs_die 1 "$f is not a plain file that can be read"
  set -f
  while IFS='=' read -r key value || [ "$key" ]; do
    case $key in *'#'*) key=${key%%#*} value=x ;; esac
    # shellcheck disable=SC2086
    set -- $key = ${value%%#*}
    key=$1 value=${3:-}
    [ "$key" != = ] || continue
    [ $# = 3 ] || key=
    case $key in
      format) [ "$value" = 1 ] || [ "$value" = 2 ] ;;
      ttl) dibs_ttl "$value" && ttl=$r ;;
      plain_ttl) dibs_ttl "$value" ;;
      max_attempts) dibs_number "$value" 9 && [ "$value" -gt 0 ] && max_attempts=$value ;;
      durability) case $value in '"off"' | '"normal"' | '"strict"') durability=${value#?} durability=${durability%?} ;; *) false ;; esac ;;
      reap_dead) [ "$value" = true ] || [ "$value" = false ] ;;
      *) false ;;
    esac || dibs_die 1 "$f: this shell library cannot read $key = $value"
  done < "$f"
  set +f
}

# Numbers and clocks, all in hundredths of a second.

dibs_number() { case $1 in '' | *[!0-9]* | 0?*) return 1 ;; esac; [ ${#1} -le "$2" ]; }

dibs_ttl() {
  case $1 in '' | *[!0-9.]* | *.*.* | .* | *.) return 1 ;; esac
  i=${1%%.*} x=${1#"${1%%.*}"}
  x=${x#.}00 x=${x%"${x#??}"}
  while case $i in 0?*) ;; *) false ;; esac; do i=${i#0}; done
  [ ${#i} -le 5 ] && r=$((i * 100 + 1$x - 100)) && [ "$r" -ge 100 ] && [ "$r" -le 8640000 ]
}

dibs_boot() { # CLOCK_BOOTTIME, which nobody sets
  read -r boot _ < /proc/uptime && boot=$((${boot%.*} * 100 + 1${boot#*.} - 100))
}

dibs_centi() { # SECONDS TEXT: the text may hold the fraction
  dibs_number "$1" 12 || return
  case $2 in *.[0-9][0-9]*) x=${2#*.} x=${x%"${x#??}"} ;; *) x=00 fuzz=100 ;; esac
  r=$(($1 * 100 + 1$x - 100))
}

dibs_nanos() { # SECONDS TEXT, as above, in nanoseconds
  x=000000000
  case $2 in *.[0-9]*) x=${2#*.} x=${x%%[!0-9]*}00000000 x=${x%"${x#?????????}"} ;; esac
  nanos=$(($1 * 1000000000 + 1$x - 1000000000))
}

dibs_now() { # the file system's clock, in hundredths in now, in nanoseconds in nowns
  probe=.dibs/probe fuzz=1
  if [ ! -e $probe ] && [ ! -L $probe ]; then (set -C; : > $probe) 2> /dev/null && dibs_own $probe; fi
  dibs_touch $probe && i=$(command stat -c '%Y|%y' $probe 2> /dev/null) &&
    dibs_centi "${i%%|*}" "${i#*|}" && now=$r && dibs_nanos "${i%%|*}" "${i#*|}" && nowns=$nanos
}

dibs_clock() { dibs_now || dibs_die 1 "$where/$probe cannot be touched"; }

dibs_touch() { # a missing file is not made, a link not followed
  command touch -ch "./$1" 2> /dev/null || { [ ! -L "./$1" ] && command touch -c "./$1" 2> /dev/null; }
}

dibs_nonce() {
  # shellcheck disable=SC2046
  set -- $(command od -An -N5 -tu1 /dev/urandom)
  [ $# = 5 ] || dibs_die 1 "no random numbers here"
  # Clones of one machine image can draw the same random bytes: time, process and host differ.
  nonce=$((((($1 * 256 + $2) * 256 + $3) * 256 + $4) * 256 + $5))
  nonce=$(printf %010X $(((nonce ^ ((dibs_salt + ${nowns:-0}) * 679535556991)) & 1099511627775)))
}

# Names. Each reader sets eid, fence, attempts, prio and claim; 1 means nobody's name.

dibs_stamp() {
  x=${1#f} prio=5 attempts=0
  [ "f$x" = "$1" ] || return
  case $x in *p*) prio=${x##*p} x=${x%p*}; case $prio in [0-46-9]) ;; *) return 1 ;; esac ;; esac
  case $x in *a*) attempts=${x#*a} x=${x%%a*}; dibs_number "$attempts" 9 && [ "$attempts" != 0 ] || return ;; esac
  dibs_number "$x" 18 && fence=$x
}

dibs_eid() { # whether it is the one spelling of an id
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
  dibs_stamp "${x#*.}" && dibs_eid "$eid" || return
  x=${claim##*-} folded=${claim%-*}
  case $folded in '' | *[!A-Za-z0-9_-]*) return 1 ;; esac
  case $x in *[!0-9A-F]*) return 1 ;; esac
  [ ${#x} = 10 ] && [ ${#folded} -le 40 ]
}

dibs_waiting() { # <id>[.<stamp>], or a shell's own spelling, unless STRICT
  claim='' fence=0 attempts=0 prio=5
  case $1 in
    *[!A-Za-z0-9_=.-]* | *.*.* | *.f0) ;;
    *.*) eid=${1%.*}; dibs_stamp "${1##*.}" && dibs_eid "$eid" && return ;;
    *) eid=$1; dibs_eid "$eid" && return ;;
  esac
  [ -z "${2:-}" ] || return 1
  fence=0 attempts=0 prio=5
  case .$1. in ..* | *.available.* | *.claimed.* | *.free.* | *.held.* | *.lock.* | *.claimed-by-*) return 1 ;; esac
  dibs_escape "$1"
}

dibs_read() { # any name on the board; sets state as well
  case $1 in
    *=00*) return 1 ;; # no shell can hold a NUL
    *.claimed-by-?*)
      state=claimed
      case ${1#*.claimed-by-} in *[!.]*) ;; *) return 1 ;; esac
      case ${1#*.claimed-by-} in *.available | *.claimed | *.free | *.held | *.lock | *.claimed-by-*) return 1 ;; esac
      case .${1%%.claimed-by-*}. in .claimed-by-* | *.available.* | *.claimed.* | *.free.* | *.held.* | *.lock.*) return 1 ;; esac
      dibs_waiting "${1%%.claimed-by-*}" ;;
    *.available) state=available; dibs_waiting "${1%.*}" ;;
    *.claimed) state=claimed; dibs_claimed "${1%.*}" || dibs_waiting "${1%.*}" ;;
    *.held) state=held; dibs_claimed "${1%.*}" ;;
    *.free) state=free; dibs_waiting "${1%.*}" strict ;;
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

dibs_bare() { # the stamp as a name without a claim carries it
  dibs_full "$@"
  r=.$r
  [ "$r" != .f0 ] || r=
}

dibs_full() {
  r=f$1
  [ "$2" = 0 ] || r=${r}a$2
  [ "$3" = 5 ] || r=${r}p$3
}

# The disk.

dibs_there() { # 0 there, 1 not there, 2 nobody can tell
  [ ! -e "./$1" ] && [ ! -L "./$1" ] || return 0
  x=$(command stat "./$1" 2>&1 > /dev/null) && return
  case $x in *'No such file'* | *'name too long'*) return 1 ;; esac
  return 2
}

dibs_why() { # TEXT: said at once, or by whoever tries many
  why=$1
  [ "${hush:-}" ] || dibs_say "$why"
}

# Renames SRC to DST and finds out what became of it. HOW is `keep` for a name without a nonce,
# where a file in the way stays. 0 mine, 1 the disk refused, 3 in the way, 4 gone, 5 uncertain;
# with STUCK 6 where it refused for the sake of this one file.
dibs_move() { # SRC DST HOW UNTIL [STUCK]
  src=$1 dst=$2 how=$3 until=$4 landed=$3
  while :; do
    here=0 there=0 rc=1 err=
    if [ "$how" = keep ] && { [ ! -e "./$src" ] || [ -e "./$dst" ] || [ -L "./$dst" ]; }; then
      : # busybox's mv -n says 0 as well where it finds no source and something in the way
    elif [ "$how" = keep ]; then err=$(command mv $dibs_T -n "./$src" "./$dst" 2>&1) && rc=0
    else err=$(command mv $dibs_T -f "./$src" "./$dst" 2>&1) && rc=0; fi
    case $err in *'No such file'* | *'not replacing'* | *'File exists'* | '') ;; *) landed=any ;; esac
    why="$src: whether it was moved cannot be told: $err"
    dibs_there "$src" || here=$?
    dibs_there "$dst" || there=$?
    if [ $here = 1 ] && [ $there != 2 ]; then
      [ "$how" != keep ] || [ $rc != 0 ] || return 0
      [ $there = 0 ] && [ "$landed" = any ] && return 0
      return 4
    fi
    if [ $here = 0 ] && [ $there = 0 ] && [ "$how" = keep ]; then
      dibs_say "$dst is in the way; it was left as it is"
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

dibs_sync() { # `strict` or `normal`, then paths: 0 where the board does not ask for it
  case $durability:$1 in off:* | normal:strict) return 0 ;; esac
  shift
  command sync "$@" 2> /dev/null && return
  [ -f "./$1" ] && [ ! -r "./$1" ] && command sync -f . 2> /dev/null # all that is there
}

# TEXT as the inside of a JSON string. Bytes that are no UTF-8 become ?, or in `names` what Python
# makes of them.
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

dibs_long=33554432 # bytes after which a journal is set aside

dibs_journal() { # VERB SRC DST BY REASON, of the task in eid; commentary, so it never fails
  dibs_unescape "$eid"
  dibs_now || now=0
  line=$(printf '{"at": %d.%02d, "verb": "%s"' $((now / 100)) $((now % 100)) "$1")
  dibs_json "$id" names; line="$line, \"id\": \"$r\""
  dibs_json "$2" names; line="$line, \"src\": \"$r\", \"dst\": \"$3\""
  dibs_json "$4"; line="$line, \"by\": \"$r\""
  dibs_json "$(printf %.1000s "$5")"
  [ $((${#line} + ${#r})) -lt 3900 ] || r= # more than one write(2) could tear it
  line="$line, \"reason\": \"$r\"}"
  f=.dibs/journal/$tag.jsonl torn=
  r=$(command stat -c '%h %f %s' "$f" 2> /dev/null)
  case $r in
    '') (printf '%s\n' "$line" >> "$f") 2> /dev/null && dibs_own "$f"; return 0 ;;
    '1 8'???' '*) ;;
    *) return 0 ;; # no regular file, or a second name of it may lie elsewhere
  esac
  [ "${r##* }" -lt $dibs_long ] || dibs_set_aside "$4" || :
  [ -z "$(command tail -c 1 "$f" 2> /dev/null)" ] || torn=$dibs_nl
  (printf '%s%s\n' "$torn" "$line" >> "$f") 2> /dev/null || :
}

dibs_set_aside() ( # BY: give the journal f a number, let all but the last three go, and say so
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

dibs_record() { # STEM: its ttl in cttl and its line in record; 2 where nobody may judge it
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

dibs_facts() { # STEM: beat, pulse, cttl; 1 gone, 2 nobody may judge it
  beat=0 pulse=0 here=''
  dibs_record "$1" || return
  while IFS='|' read -r n y z yt zt; do
    case $n in *.claimed) here=1 ;; '') continue ;; esac
    dibs_centi "$z" "$zt" || return 2
    k=$r
    dibs_centi "$y" "$yt" || return 2
    # A payload's own mtime says when it was written, save where a claimant has to touch it.
    case $n:$ctime_moves in
      ./"$1".claimed:yes) beat=$k; dibs_nanos "$z" "$zt" ;;
      ./"$1".claimed:*) if [ "$r" -lt "$k" ]; then beat=$k; dibs_nanos "$z" "$zt"; else beat=$r; dibs_nanos "$y" "$yt"; fi ;;
      *) beat=$r; dibs_nanos "$y" "$yt" ;; # the record: a link or a new mode is no beat
    esac
    pulse=$nanos
  done << EOF
$(command stat -c '%n|%Y|%Z|%y|%z' "./$1.claimed" "./.dibs/records/$1" 2> /dev/null | command tr ' ' /)
EOF
  [ ! "$here" ] || return 0
  dibs_there "$1.claimed"
  case $? in 1) return 1 ;; *) return 2 ;; esac
}

dibs_learn() { # whether a rename moves ctime here: found out once per host, boot and device
  f=.dibs/witness/$tag.ctime ctime_moves=
  [ ! "$dibs_tag" ] || [ ! -f "$f" ] || [ -L "$f" ] || read -r ctime_moves < "$f"
  case $ctime_moves in yes | no) return ;; esac
  dibs_nonce
  (set -C; : > ".dibs/new/$nonce") 2> /dev/null || dibs_die 1 "$where/.dibs/new cannot be written"
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

dibs_room() { # each boot leaves a witness: of 512 the older half goes
  set -- .dibs/witness/*
  # shellcheck disable=SC2012
  [ $# -lt 512 ] || command ls -t .dibs/witness | command tail -n +256 | while read -r x; do
    command rm -f "./.dibs/witness/$x"
  done
}

dibs_compare() { # where a touch gives a file its only time, that is not a wrong clock's
  dibs_boot
  before=$boot
  (set -C; : > ".dibs/new/$nonce") 2> /dev/null
  x=$(command stat -c '%Y|%y' ".dibs/new/$nonce") && dibs_centi "${x%%|*}" "${x#*|}" && age=$r &&
    dibs_touch ".dibs/new/$nonce" && x=$(command stat -c '%Y|%y' ".dibs/new/$nonce") &&
    dibs_centi "${x%%|*}" "${x#*|}" || dibs_die 1 "$where/.dibs/new cannot be written"
  command rm -f ".dibs/new/$nonce"
  dibs_boot
  age=$((r - age)) x=$((200 + boot - before))
  [ ${age#-} -le $x ] || dibs_die 1 "beats get this host's time here, $((age / 100)) s off: set the clock (NTP)"
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
    dibs_die 1 "$where/.dibs/known cannot be written"
  dibs_own ".dibs/known/$1"
}

# Takes exactly NAME, whose parts were just read. The deadline counts from before the rename, and
# the record follows the name: one from before would make a fresh claim look old.
dibs_take() { # NAME VERB: prints the claim and exits, or 4 when somebody was faster, 6 when nobody can
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
  if ! dibs_write_record ".dibs/records/$stem"; then
    command rm -f ".dibs/records/$stem"
    dibs_bare $((fence + 1)) "$attempts" "$prio"
    dibs_move "$stem.claimed" "$eid$r.available" keep $((start + limit))
    dibs_die 1 "$where/.dibs/records cannot be written"
  fi
  dibs_boot
  x=$cttl
  [ "$x" -le "$ttl" ] || x=$ttl
  [ "$boot" -lt $((start + x * 4 / 5)) ] || dibs_die 5 "$stem: taking it took longer than its lease; stop"
  dibs_journal "$verb" "$name" "$stem.claimed" "$owner" "${DIBS_META:-}"
  dibs_sync strict .
  [ "$verb" = claim ] || command rm -f "./.dibs/records/${name%.claimed}"
  dibs_answer "$stem" $((start + cttl * 4 / 5))
}

dibs_try() { # take it and end with that, or return when somebody was faster
  dibs_take "$@"
  code=$?
  case $code in 4) ;; 6) exit 1 ;; *) exit $code ;; esac
}

dibs_unfit() { # NAME, just read: whether nobody here can claim it; the reason in why
  if [ -L "./$1" ]; then why="it is a link"
  elif [ -d "./$1" ]; then why="it is a folder"
  elif [ ! -e "./$1" ]; then return 1
  elif [ ! -f "./$1" ]; then why="it is no file"
  elif [ ! -r "./$1" ]; then why="this user cannot read it"
  elif [ "$fence" = 999999999999999999 ]; then why="its fence is as high as a name can hold"
  else return 1; fi
}

dibs_answer() {
  dibs_unescape "$eid"
  printf '%s\n%s\n%s/./\n%s.\n' "$1" "$2" "$PWD" "$id"
  exit 0
}

dibs_terms() { # what claiming needs to know
  dibs_learn
  dibs_clock
  dibs_fits "${DIBS_META:-}" 1024 || dibs_die 2 "DIBS_META has more than 1024 characters"
}

dibs_find() { # EID: every name of it on the board; the count in found, the last in name
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
  [ $# = 1 ] && [ "$1" ] && dibs_escape "$1" || dibs_die 2 "give one id of 1 to 120 bytes, once escaped"
  want=$eid round=0 mine=$cttl
  dibs_terms
  while [ $((round = round + 1)) -le 20 ]; do
    dibs_find "$want"
    if [ $found != 1 ]; then
      [ $round -gt 2 ] || continue # a listing misses and doubles what is renamed meanwhile
      [ $found = 0 ] || dibs_die 3 "$1 has two names, so nobody may take it: keep one of them"
      dibs_die 3 "$1 does not wait on this board"
    fi
    dibs_read "$name" && cttl=$mine
    case $state in
      available) dibs_try "$name" claim; continue ;;
      free | held) dibs_die 2 "$1 is a lock: use dibs acquire" ;;
    esac
    [ "$claim" ] && [ "$folded" != dibs ] || dibs_die 4 "$1 is held by a plain worker"
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
      dibs_give_back "$stem"
      code=$?
      [ $code = 0 ] || [ $code = 4 ] || exit $code
    else
      dibs_die 4 "$1 is held as $stem, $said"
    fi
  done
  dibs_die 4 "$1: somebody is always faster"
}

# The next task: by priority, then by name. Claimants that meet leave each other: after two losses
# they go on some slices of 64 further down, and come back when nothing is left there. No name is
# tried twice. One that cannot be claimed is passed over; trouble that may be the disk's ends the
# search only where it leaves nothing else to take.
dibs_next() {
  mine=$cttl
  dibs_terms
  dibs_boot
  chance=$(($$ * 7919 + boot)) reaped='' begun=$boot tried=/ trouble='' hush=1
  while :; do
    losses=0 skipped=
    set -- *.available
    for p in 9 8 7 6 5 4 3 2 1 0; do
      skip=0
      for n in "$@"; do
        case $n in *.f*p[0-46-9].available) x=${n%.*} x=${x##*p} ;; *) x=5 ;; esac
        [ "$x" = $p ] || continue
        [ $skip = 0 ] || { skip=$((skip - 1)) skipped=1; continue; }
        case $tried in */"$n"/*) continue ;; esac
        dibs_read "$n" && ! dibs_unfit "$n" || continue
        dibs_find "$eid"
        [ $found = 1 ] && [ "$name" = "$n" ] && dibs_read "$n" || continue
        cttl=$mine
        dibs_take "$n" claim
        code=$? tried=$tried$n/
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

# CLAIM or nothing or the id of DIBS_CLAIM: the exact claim in stem, its parts read.
dibs_mine() {
  stem=${1:-${DIBS_CLAIM:-}}
  stem=${stem%.claimed}
  dibs_claimed "$stem" && [ "$folded" != dibs ] && return
  if [ "$stem" ] && dibs_escape "$stem"; then
    want=$eid stem=${DIBS_CLAIM:-}
    dibs_claimed "$stem" && [ "$eid" = "$want" ] && return
  fi
  dibs_die 2 "'$1' is not the exact name of a claim, and DIBS_CLAIM holds none of that id"
}

dibs_lost() { # VERB: leaves a trace for operators, and ends
  # The loop stopped its heartbeats and ended the claim while this one was on its way.
  [ -z "${dibs_beater:-}" ] || [ -e "/proc/$dibs_beater" ] || exit 5
  [ "${DIBS_OWNER:-}" ] || owner=$folded
  dibs_journal refused "$stem" "" "$owner" "$1"
  dibs_die 5 "$stem is no longer yours; stop"
}

# Until when the lease runs for its owner. Whoever has no deadline in memory reads the age from the
# disk; so does one whose deadline has passed, as a process beside it may have beaten.
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

dibs_end() { # VERB CLAIM REASON
  dibs_mine "$2"
  if [ "$1" = "done" ]; then
    if [ -f "./$stem.claimed" ] && ! dibs_sync normal "./$stem.claimed" && [ -e "./$stem.claimed" ]; then
      dibs_die 1 "$stem could not be made durable"
    fi
    dst=done/$stem
  elif [ "$1" = fail ]; then
    dibs_failed
  else
    dibs_bare "$fence" "$attempts" "$prio"
    dst=$eid$r.available
  fi
  [ "${DIBS_OWNER:-}" ] || owner=$folded
  dibs_ended "$1" "$dst" "$owner" "$3"
  code=$?
  [ $code != 4 ] || dibs_lost "$1"
  exit $code
}

dibs_failed() { # where a claim goes when it failed or expired, in dst
  [ "$attempts" = 999999999 ] || attempts=$((attempts + 1))
  if [ "$attempts" -ge "$max_attempts" ]; then
    dibs_full "$fence" "$attempts" "$prio"
    dst=failed/$eid.$r.$claim
  else
    dibs_bare "$fence" "$attempts" "$prio"
    dst=$eid$r.available
  fi
}

dibs_ended() { # VERB DST BY REASON: the one rename that ends the claim in stem
  case $2 in */*) how=any folder=${2%/*} need=normal ;; *) how=keep folder='' need=strict ;; esac
  dibs_boot
  dibs_move "$stem.claimed" "$2" $how $((boot + 500)) || return
  # Found at DST without a record: an earlier call moved it and wrote its line.
  again=1
  [ "$how" = any ] && [ "$rc" != 0 ] && [ ! -e "./.dibs/records/$stem" ] || again=
  command rm -f "./.dibs/records/$stem"
  [ "$again" ] || dibs_journal "$1" "$stem.claimed" "$2" "$3" "$4"
  # shellcheck disable=SC2086
  dibs_sync $need $folder . || dibs_die 5 "$stem: it is done, but could not be made durable"
}

# Giving back what fell silent: past its ttl by the file system's clock, and proved by looks at it, which
# are shared with dibs: one boot saw it with the very same times for 0.8 of its ttl, or callers of any
# boots for 1.5 of it, by the board's clock, in which no gap counts more than a quarter.

dibs_reap() {
  dibs_learn
  for n in *.*.*-*.claimed; do
    [ -e "./$n" ] && dibs_claimed "${n%.claimed}" && [ "$folded" != dibs ] || continue
    stem=${n%.claimed}
    dibs_judge "$stem" && dibs_give_back "$stem" && printf '%s\n' "$dst"
  done
  for f in .dibs/looks/*.*.*-*; do
    stem=${f#.dibs/looks/}
    [ -e "./$stem.claimed" ] || [ -e "./$stem.held" ] || ! dibs_claimed "$stem" || command rm -f "./$f"
  done
}

dibs_sweep() { # AFTER: reap if it is time, and print when it will be again
  dibs_boot
  [ "$boot" -ge "$1" ] || { printf '%s\n' "$1"; return; }
  after=$((boot + ttl / 4))
  dibs_reap > /dev/null 2>&1
  printf '%s\n' $after
}

dibs_watched() { # STEM: for how long it was seen so, in nanoseconds: own, shared
  own=0 shared=0 top='' ours='' lines=0 data='' f=./.dibs/looks/$1
  [ -f "$f" ] && [ ! -L "$f" ] || { dibs_beyond "$nowns"; top=; return; }
  data=$({ command head -c 8192 "$f"; printf x; } 2> /dev/null)
  data=${data%"${data##*"$dibs_nl"}"} # a torn tail goes
  while read -r k b n y x; do
    [ "$y" = "$pulse" ] && [ -z "$x" ] && dibs_number "$b" 18 && dibs_number "$n" 19 || continue
    case $k:$n in *[!A-Za-z0-9]*:* | *:9??????????????????) continue ;; esac
    if [ "$k" = "$dibs_key" ]; then
      [ "$b" -le "$before" ] || continue
      ours=1 x=$((before - b))
      i=$((nowns - n - x)) # a clone has this boot id and another clock: both must say it
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

dibs_beyond() { # TIME: what goes beyond the highest so far counts, a quarter of the ttl at most
  if [ -z "$top" ]; then top=$1 shared=0
  elif [ "$1" -lt $((top - skew)) ]; then top='' shared=0
  elif [ "$1" -gt "$top" ]; then
    i=$(($1 - top)) top=$1
    [ $i -le $((cttl * 2500000)) ] || i=$((cttl * 2500000))
    shared=$((shared + i))
  fi
}

dibs_keep_look() { # STEM, which was just judged: a line of its own, where it says anything new
  dibs_boot
  dibs_clock
  [ -z "$top" ] || [ "$nowns" -ge $((top + cttl * 625000)) ] || [ "$nowns" -lt $((top - skew)) ] ||
    { [ -z "$ours" ] && [ "$lines" -lt 32 ]; } || return 0
  f=./.dibs/looks/$1 line="$dibs_key $((boot + 1))0000000 $nowns $pulse"
  if [ -e "$f" ] || [ -L "$f" ]; then # a second name of it may lie elsewhere
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

dibs_judge() { # STEM: 0 silent for sure, 1 gone, 2 nobody may judge, 4 not yet; why in said
  said="and nobody may judge it"
  dibs_boot
  before=${boot}0000000
  dibs_clock # before the claim is read: no beat can hide in between
  dibs_facts "$1" || return
  silent=$((now - beat - fuzz)) skew=$((cttl * 500000))
  [ $skew -le 2000000000 ] || skew=2000000000
  if [ $((beat - now)) -gt 200 ]; then # no age to go by, only the looks
    silent=0 wait=$((cttl * 10000000 + 2000000000)) x=2000000000 said="its beat lies in the future"
  elif [ $silent -le "$cttl" ]; then
    said="for $(((cttl - silent) / 100 + 1)) s more unless it beats"
    return 4
  else
    wait=$((cttl * 8000000)) x=0 said="past its ttl"
  fi
  [ $((nowns % 1000000000)) != 0 ] || x=$((x + 2000000000))
  age=$((cttl * 15000000 + x))
  dibs_watched "$1"
  wait=$((wait + fuzz * 10000000 - own)) age=$((age - shared))
  [ $wait -le $age ] || wait=$age
  [ $wait -gt 0 ] || return 0
  [ $wait -le $((cttl * 2500000)) ] || wait=$((cttl * 2500000))
  said="$said: ask again in $((wait / 1000000000 + 1)) s"
  dibs_keep_look "$1"
  return 4
}

dibs_give_back() { # STEM, which was just judged
  stem=$1
  dibs_claimed "$stem"
  dibs_failed
  x=${USER:-${LOGNAME:-$(command id -un 2> /dev/null)}}
  dibs_ended reap "$dst" "${x:-$(command id -u)}@$dibs_host" \
    "silent for $((silent / 100)) s, ttl $((cttl / 100)) s" || return
  command rm -f "./.dibs/looks/$stem"
}
