# Begins a process with the state of a session: "$1" is the file with the state, "$2" how to run the rest. The state
# sets the positional parameters and the marker of the session; ours are kept aside.
__hf_m=$HOLDFAST_COMMAND __hf_k=$2 __hf_a=("${@:3}")
\builtin set +p
\builtin mapfile -d "" -t -n 1 __hf_t <"$1" || \builtin exit 125
\builtin eval "$__hf_t" >/dev/null 2>&1
if [[ $__hf_f != *m* ]]; then \builtin set +m; fi
\builtin export HOLDFAST_COMMAND="$__hf_m"
\builtin unset -v HOLDFAST_SESSION __hf_t __hf_m
if [[ $__hf_k == argv ]]; then \builtin exec -- "${__hf_a[@]}"; fi
if [[ $__hf_al ]]; then \builtin shopt -s expand_aliases; fi
if [[ $__hf_f ]]; then \builtin set "-$__hf_f"; fi
\builtin eval "${__hf_a[0]}"
