# A storm worker that uses the shell library: it claims, beats while it works and commits. It records
# in the outside log what it relies on, and each rename that it tries.
#   library.sh LIBRARY BOARD LEDGER HALT TTL LONG OWNER

# shellcheck disable=SC2034,SC2153,SC2154
ledger=$3 halt=$4 long=$6
DIBS_DIR=$2 DIBS_TTL=$5 DIBS_OWNER=$7
eval "$(sed 's/^dibs_move()/dibs_moved()/' "$1")"

note() { # WORD NAME MORE HUNDREDTHS
  [ "${4:-}" ] || dibs_boot
  printf '%s %s %s0000000 %s %s\n' "$1" $$ "${4:-$boot}" "$2" "${3:--}" >> "$ledger"
}

dibs_move() {
  note try "$1" "$2"
  dibs_moved "$@"
}

believe() { # records since when the claim holds, computed from the deadline
  dibs_ttl "$DIBS_TTL"
  note live "$DIBS_CLAIM" - $((${dibs_lease#* } - r * 4 / 5))
}

report() {
  case $words in *"no longer yours"*) note lost "$DIBS_CLAIM" ;; *) note uncertain "$DIBS_CLAIM" ;; esac
}

dice() {
  # shellcheck disable=SC2046
  set -- $(od -An -N2 -tu1 /dev/urandom)
  one=$1 two=$2
}

work() {
  [ "$one" -lt "$long" ] || { [ "$one" -lt 220 ] || sleep 0.05; return 0; }
  for _ in 1 2 3 4 5; do
    dibs_ttl "$DIBS_TTL"
    sleep "$(printf '%d.%02d' $((r / 300)) $((r / 3 % 100)))"
    heartbeat 2> /dev/null || { note uncertain "$DIBS_CLAIM"; return 1; }
    believe
  done
}

turn=0
while [ ! -e "$halt" ]; do
  [ $((turn = (turn + 1) % 8)) != 0 ] || reap_stale > /dev/null 2>&1 || :
  next_task > /dev/null 2>&1 || {
    [ $? != 5 ] || note uncertain -
    sleep 0.1
    continue
  }
  believe
  dice
  { read -r first < "$DIBS_PAYLOAD"; } 2> /dev/null && [ "$first" != "the payload of $DIBS_ID" ] && exit 9
  work || continue
  if [ "$two" -lt 5 ]; then
    note given "$DIBS_CLAIM"
    words=$(fail_task "" "the dice said so" 2>&1) || report
  elif [ "$two" -lt 10 ]; then
    note given "$DIBS_CLAIM"
    words=$(return_task 2>&1) || report
  else
    note intent "$DIBS_CLAIM"
    if words=$(done_task 2>&1); then note "done" "$DIBS_CLAIM"; else report; fi
  fi
done
