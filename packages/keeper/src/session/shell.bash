# What the persistent bash is told when it starts. See bash-shell.ts for the whole picture.
#
# Bash reads its program from a pipe, the feed, line by line. The lines are ours alone: the text of a command is in a
# file in memory, is read into a variable and given to eval, so nothing in it can swallow what follows. Because bash is
# fed and does not loop, the text runs at true top level (break 99, declare, set -- mean what they mean anywhere), an
# error for which bash drops the rest of its line drops only the text, and the next line is still read: it reports the
# end if that is not done.
#
# Descriptors: 0 the feed, 70 the command, 71 and 72 the stdout and stderr of the session, 73 reports to the driver, 74 orders for the
# savepoint, 75 dumps (bash itself takes 63 and below for process substitution). All are closed while a text runs:
# nothing that it starts can hold or see them.
#
# Every line of ours is a group whose output is thrown away, so that set -x and a DEBUG trap say nothing about it; the
# own stdout and stderr of the shell stay those of the session, so that an EXIT trap is heard. Builtins are called as
# \builtin: neither an alias nor a function gets between. The parts are strings, evaluated at top level, because a
# function would make declare local and hide DEBUG traps; so no single quote may occur in them.

# Takes the command: its number, the status before it, its id, its stdin, where to go first if anywhere, its text. If
# one number is not the other, then somebody has meddled with the descriptor, or the driver is gone and its last line
# was taken for whole. What most commands do not need is in a string of its own, which they need not parse.
__hf_load='
if \builtin mapfile -d "" -t -n 6 -u 70 __hf_x && [[ ${__hf_x[0]} = "$__hf_n" ]]
then \builtin export HOLDFAST_COMMAND="${__hf_x[2]}"
else \builtin printf "X %s\n" "$__hf_n" >&73; __hf_x=("$__hf_n" 0 "" /dev/null "" "")
fi
if [[ ${__hf_x[1]}${__hf_x[4]}$__hf_al$__hf_f != 0 ]]; then \builtin eval "$__hf_mood"; fi'

# The flags come late: from there on our own lines feel them, too. Last comes the status, which the text finds in $?; a
# function is the only way to set that without a fork, and it is gone again when the text begins. What comes before && is
# no matter for -e or an ERR trap, so the eval around it is followed by one, too.
__hf_mood='
if [[ ${__hf_x[4]} ]]; then \builtin cd -- "${__hf_x[4]}"; fi
__hf_ret() { \builtin unset -f __hf_ret; \builtin return "${__hf_x[1]}"; }
if [[ $__hf_al ]]; then \builtin shopt -s expand_aliases; fi
if [[ $__hf_f ]]; then \builtin set "-$__hf_f"; fi
__hf_ret && \builtin :'

# Reports the end. A shell that is restricted, ends after this line (-t) or has lost its descriptors cannot go on, and
# says nothing: its end is noticed, and undone. The look at $- is one that nocasematch does not change. Without a
# reserved word, because the aliases of the user are still there. __hf_r is missing if bash dropped the rest of the
# line of the text; then __hf_q is $? as that left it.
__hf_end='
\builtin test "${-%%[rt]*}" = "$-" &&
\builtin printf "E %s %s\n" "$__hf_n" "${__hf_r:-$__hf_q}" >&73 &&
\builtin eval "$__hf_keep" || \builtin :'

# Then forks the savepoint. Once for each command: __hf_z is what is left to do at its end. Our lines are read without
# the flags and aliases of the user, which __hf_f and __hf_al keep. The empty report waits until the driver has read the
# one before it (see ShellLink): whoever waits for the command has its end before we are busy with a fork.
__hf_keep='
\builtin printf "\n" >&73
__hf_f=$- __hf_al=$BASHOPTS
\builtin shopt -u expand_aliases
\builtin set +aeuvx
__hf_z=
__hf_f=${__hf_f//[!aefuvxm]/}
if [[ :$__hf_al: != *:expand_aliases:* ]]; then __hf_al=; fi
\builtin unset -v __hf_x
\builtin eval "$__hf_save"'

# Forked twice, so that the jobs, $! and wait of the shell know nothing of it; with job control, so that the savepoint
# is in a process group of its own (kill 0 misses it) and does not ignore SIGINT; with its stdin named, so that it keeps
# the feed.
__hf_save='
( \builtin set -m
  ( \builtin eval "$__hf_hold" ) <&0 & )'

# The savepoint: a fork that holds the whole state. It gives up pipes that the user opened, or whoever waits for their
# end would wait for ever. An order with another number was meant for another savepoint, and is given again. A read that
# fails above 128 met TMOUT or a signal; any other failure is the end of the driver.
__hf_hold='
\builtin printf "S %s %s\n" "$__hf_n" "$BASHPID" >&73
\builtin set +f
for __hf_g in /proc/"$BASHPID"/fd/*
do
  case $__hf_g in
    */[012] | */7[0-5]) ;;
    *) if [[ -p $__hf_g || -S $__hf_g ]]; then \builtin eval "\builtin exec ${__hf_g##*/}>&-"; fi ;;
  esac
done
while \builtin :
do
  if \builtin read -r -u 74 __hf_g
  then
    case $__hf_g in
      "dump $__hf_n") ( \builtin eval "$__hf_dump" ) >&75; \builtin printf "K %s\n" "$__hf_n" >&73 ;;
      "go $__hf_n") \builtin break ;;
    esac
  elif [[ $? -le 128 ]]
  then \builtin kill -9 "$BASHPID"
  fi
done
\builtin set -m
( \builtin set +m
  \builtin export -n POSIXLY_CORRECT
  \builtin export HOLDFAST_COMMAND="$__hf_m"
  \builtin printf "T %s %s\n" "$__hf_n" "$BASHPID" >&73
  \builtin exec -a bash "$__hf_b" --noprofile --norc -p 1>&71 2>&72 )
\builtin printf "D %s %s\n" "$__hf_n" "$?" >&73'

# The state as commands that bring it back. Variables come first, one to a line, up to the line "#". Functions come
# late, so that one that is named like a builtin gets between nothing. $- of a savepoint is not that of the user.
__hf_dump='
\builtin declare -p __hf_f __hf_al
for __hf_g in "${__hf_names[@]}"
do
  if [[ ! -v $__hf_g ]]; then \builtin printf "unset -v %s\n" "$__hf_g"; fi
done
\builtin unset -v __hf_g "${!__hf_@}"
\builtin declare -p
\builtin printf "#\n"
\builtin printf "cd -- %q\n" "$PWD"
\builtin umask -p
\builtin shopt -p
\builtin set +o
\builtin alias -p
\builtin complete -p
\builtin hash -l
\builtin printf "set --"
if [[ $# -gt 0 ]]; then \builtin printf " %q" "$@"; fi
\builtin printf "\n"
\builtin trap -p
\builtin declare -f
\builtin declare -Fx'

# Brings a dumped state back, and reports that it has it: a job of the shell before may read of the same feed, and take
# the line away that asks for this.
__hf_restore='
if \builtin mapfile -d "" -t -n 1 __hf_t <"$__hf_d/state"
then
  \builtin printf "R %s\n" "$__hf_n" >&73
  \builtin eval "$__hf_t"
  \builtin unset -v __hf_t
  if [[ $__hf_f != *m* ]]; then \builtin set +m; fi
fi'
__hf_f= __hf_al= __hf_r= __hf_z=$__hf_end
