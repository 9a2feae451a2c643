# The reaper of a shell fleet: it goes by the text of the lock, without a second look.
#   reaper.sh BOARD LOG TTL

cd "$1" || exit 1
log=$2 ttl=$3
while sleep 0.4; do
  for lock in *.lock; do
    [ -e "$lock" ] || continue
    task=${lock%.lock}
    { read -r line < "$lock"; } 2>/dev/null || continue
    since=${line#claim_time=}
    since=${since%%[!0-9]*}
    [ "$since" ] && [ $(($(date +%s) - since)) -gt "$ttl" ] || continue
    echo "reap $$ $(date +%s%N) $task -" >> "$log"
    mv "$task.claimed" "$task.available" 2>/dev/null
    rm -f "$lock"
  done
done
