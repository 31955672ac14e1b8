# Prepares, records, scores and compares the runs of a job of GitHub or GitLab, and writes the text of its comment.
# Usage: bash score.sh. Variables, of which the unset ones are empty:
#   NAME            of the comment
#   DIRECTORY       absolute; is replaced; gets comment.md, the recordings, the pages and JUnit
#   PREPARE         a command that installs spanscore; its failure is a comment, too
#   SPANSCORE       the program
#   CONFIG, COMMAND, RECORDINGS, BASE_DIRECTORY, BASE, SCORE_OPTIONS, DIFF_OPTIONS: the inputs of action.yml
# Exit status: 0 passed; 1 a run failed, the command failed, or the version is worse; 2 nothing was scored.
set -eu -o pipefail

output=${GITHUB_OUTPUT:-/dev/null}
job=${CI_JOB_URL:-${GITHUB_SERVER_URL:-}/${GITHUB_REPOSITORY:-}/actions/runs/${GITHUB_RUN_ID:-}}
rm -rf "$DIRECTORY"
mkdir -p "$DIRECTORY"
echo "directory=$DIRECTORY" >> "$output"
comment=$DIRECTORY/comment.md

# say LEVEL MESSAGE: GitHub shows it beside the job.
say() { echo "${GITHUB_OUTPUT:+::$1::}$2"; }
# conclude: takes the comment from stdin. An earlier one is replaced, whatever happened.
conclude() {
  { echo "<!-- spanscore: $NAME -->"; cat; } > "$comment"
  cat "$comment" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
}
# finish MESSAGE: ends with the reason why there is no result.
finish() {
  say error "$1"
  { echo "### 🔴 $NAME: nothing was scored"; echo; echo "$1"; echo; echo "[The job]($job) has the log."; } | conclude
  exit 2
}
record() { "$SPANSCORE" record -o "$1" -- bash -e -o pipefail -c "$COMMAND"; }

status=0
bash -e -o pipefail -c "${PREPARE:-:}" || status=$?
if [ "$status" != 0 ]; then finish "The preparation failed (status $status): $PREPARE"; fi

BASE=${BASE:-}
incomplete=
uncompared=
if [ -n "${COMMAND:-}" ]; then
  if [ -n "${BASE_DIRECTORY:-}" ] && [ ! -d "$BASE_DIRECTORY" ]; then finish "There is no base-directory $BASE_DIRECTORY."; fi
  RECORDINGS=$DIRECTORY/runs.jsonl
  record "$RECORDINGS" || status=$?
  if [ ! -s "$RECORDINGS" ]; then finish "The command failed, or sent no spans (status $status): $COMMAND"; fi
  if [ "$status" != 0 ]; then
    incomplete="The command failed (status $status). The results are those of the runs that were recorded: $COMMAND"
    say error "$incomplete"
  fi
  if [ -n "${BASE_DIRECTORY:-}" ]; then
    BASE=$DIRECTORY/base.jsonl
    if ! (cd "$BASE_DIRECTORY" && record "$BASE"); then
      BASE=
      uncompared="Not compared: in $BASE_DIRECTORY the command failed, or sent no spans."
      say warning "$uncompared"
    fi
  fi
elif [ -n "${BASE_DIRECTORY:-}" ]; then
  finish "base-directory needs a command. For a recording of the version before, use base."
fi
mapfile -t recordings < <(grep . <<< "${RECORDINGS:-}")
if [ "${#recordings[@]}" = 0 ]; then finish "There is nothing to score: set command or recordings."; fi
if [ -n "$BASE" ] && [ "${#recordings[@]}" != 1 ]; then
  finish "A comparison needs one recording, or one directory of recordings; recordings has ${#recordings[@]}."
fi

scored=0
# shellcheck disable=SC2086 # these are words
"$SPANSCORE" score "${recordings[@]}" --config "$CONFIG" ${SCORE_OPTIONS:-} --markdown "$DIRECTORY/score.md" \
  --junit "$DIRECTORY/junit.xml" --html "$DIRECTORY/runs.html" 2> "$DIRECTORY/messages" || scored=$?
cat "$DIRECTORY/messages" >&2
echo "score-status=$scored" >> "$output"
if [ ! -s "$DIRECTORY/score.md" ]; then
  finish "spanscore score ended with $scored: $(tail -n 5 "$DIRECTORY/messages")"
fi
compared=
if [ -n "$BASE" ]; then
  compared=0
  # shellcheck disable=SC2086 # these are words
  "$SPANSCORE" diff "$BASE" "${recordings[0]}" --config "$CONFIG" ${DIFF_OPTIONS:-} --markdown "$DIRECTORY/diff.md" \
    --html "$DIRECTORY/diff.html" 2> "$DIRECTORY/messages" || compared=$?
  cat "$DIRECTORY/messages" >&2
  if [ ! -s "$DIRECTORY/diff.md" ]; then
    uncompared="🔴 Not compared: spanscore diff ended with $compared: $(tail -n 5 "$DIRECTORY/messages")"
  fi
fi
echo "diff-status=$compared" >> "$output"
# The comparison comes first: it shows the effect of the change. Headings need an empty line before them.
{
  if [ -n "$incomplete" ]; then echo "🔴 $incomplete"; echo; fi
  if [ -s "$DIRECTORY/diff.md" ]; then cat "$DIRECTORY/diff.md"; echo; fi
  if [ -n "$uncompared" ]; then echo "$uncompared"; echo; fi
  cat "$DIRECTORY/score.md"
  echo
  echo "[The job]($job) has the page of all runs."
} | conclude

if [ -n "$incomplete" ]; then status=1; fi
if [ "$scored" != 0 ]; then say error "runs failed or were not checked (spanscore score: $scored)"; status=1; fi
case "$compared" in
  "" | 0) ;;
  3) say notice "too few runs to compare the versions" ;;
  1) say error "the version is worse, or was not compared (spanscore diff: 1)"; status=1 ;;
  *) say error "the versions were not compared (spanscore diff: $compared)"; status=1 ;;
esac
exit "$status"
