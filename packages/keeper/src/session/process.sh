# Begins a process with the state of a session whose shell is not bash: "$1" is the file with the state, "$2" how to run
# the rest.
__hf_m=$HOLDFAST_COMMAND
command . "$1" >/dev/null 2>&1 || exit 125
export HOLDFAST_COMMAND="$__hf_m"
unset -v HOLDFAST_SESSION __hf_m
__hf_k=$2
shift 2
if [ "$__hf_k" = argv ]; then exec "$@"; fi
__hf_k=$1
shift
eval "$__hf_k"
