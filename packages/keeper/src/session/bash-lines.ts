import { join } from "node:path";
import type { ShellOrder } from "./session-shell.ts";

/** The lines that a bash is fed; shell.bash explains them. */

const QUIETLY = ">/dev/null 2>&1";
const OWN_DESCRIPTORS_CLOSED = "70<&- 71>&- 72>&- 73>&- 74<&- 75>&-";
// Here and not in shell.bash: with one more eval around it bash would not undo the group's redirection on exit, and an
// EXIT trap would not be heard. On one line, because bash counts the lines of the text from here. Negated, so that errexit acts inside the text but
// not on its end. Verbose goes off at once: bash would show the next line of ours.
const EVALUATE =
  `! \\builtin eval "$__hf_t" 0<"$__hf_i" 1>&71 2>&72 ${OWN_DESCRIPTORS_CLOSED}; ` +
  `__hf_rc=\${PIPESTATUS[0]} __hf_v=$-; \\unset -f builtin; \\builtin set +v`;
// The only way to make bash count lines anew: a failed assignment to a read-only variable leaves the counter as its
// arithmetic set it. In POSIX mode such a failure would end the shell.
const COUNT_LINES_ANEW = "[[ -o posix ]] || PPID=$((LINENO=0))";
// Bash sets these when it starts: what the user has unset of them must be unset again.
const SET_BY_BASH =
  "PATH IFS PS4 OPTERR OPTIND HOSTNAME HOSTTYPE MACHTYPE OSTYPE SHELL SHLVL TERM BASH OLDPWD";

/** The first line for a shell that was spawned; one that took over has its descriptors already. */
export const MOVE_DESCRIPTORS = "exec 70<&0 71>&1 72>&2 73>&3- 74<&4- 75>&5-";

/** Defines our side in a shell that knows nothing yet. */
export function definitions(facts: {
  dir: string;
  bash: string;
  marker: string;
  n: number;
  envNames: readonly string[];
}): string[] {
  const names = [SET_BY_BASH, ...facts.envNames].join(" ");
  return [
    `__hf_d=${bashWord(facts.dir)} __hf_b=${bashWord(facts.bash)} __hf_m=${bashWord(facts.marker)}`,
    `__hf_n=${facts.n} __hf_names=(${names})`,
    `{ \\builtin . "$__hf_d/shell"; \\builtin set +p; } ${QUIETLY}`,
  ];
}

/** Dumps the variables of these names. */
export function declarationsOf(names: readonly string[]): string {
  return `{ \\builtin declare -p ${names.join(" ")} >&75; \\builtin printf "K %s\\n" "$__hf_n" >&73; } ${QUIETLY}`;
}

export const RESTORE = [`{ \\builtin eval "$__hf_restore"; } ${QUIETLY}`, ""];

export const SAVE = `{ \\builtin eval "$__hf_save"; ${COUNT_LINES_ANEW}; } ${QUIETLY}`;

/** One command: its text is in a file, and finds the status of the text before it in `$?`. */
export function command(order: ShellOrder, facts: { dir: string; n: number; status: number }): string[] {
  const input = order.stdin === undefined ? "/dev/null" : bashWord(join(facts.dir, "stdin"));
  const cd = order.cd === undefined ? "" : ` \\builtin cd -- ${bashWord(order.cd)};`;
  const prepare = `\\builtin eval "$__hf_load"`;
  const evaluate = facts.status === 0 ? EVALUATE : evaluateAfter(facts.status);
  return [
    `{ __hf_n=${facts.n} __hf_c=${order.marker} __hf_i=${input};${cd} ${prepare}; ${evaluate}; } ${QUIETLY}`,
    "", // after a text with an open quote, bash takes no reserved word at the beginning of the next line
    `{ __hf_q=$?; \\unset -f builtin; \\builtin eval "$__hf_end"; ${COUNT_LINES_ANEW}; } ${QUIETLY}`,
  ];
}

/** A function is the only way to set `$?` without a fork. It is gone again when the text begins. */
function evaluateAfter(status: number): string {
  const define = `__hf_ret() { \\builtin unset -f __hf_ret; \\builtin return ${status}; }`;
  return `${define}; if __hf_ret; then \\builtin :; else ${EVALUATE}; fi`;
}

export const EXIT = "\\builtin exit 0";

/** Any bytes as one word of bash, in ASCII, so that neither a locale nor a quote can change it. */
function bashWord(text: string): string {
  let word = "$'";
  for (const byte of Buffer.from(text)) {
    const plain = byte > 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c;
    word += plain ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`;
  }
  return `${word}'`;
}
