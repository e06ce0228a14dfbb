import { join } from "node:path";
import type { ShellOrder } from "./session-shell.ts";

/** The lines that a bash is fed; shell.bash explains them. */

const QUIETLY = "&>/dev/null";
// Here and not in shell.bash: with one more eval around it bash would not undo the group's redirection on exit, and an
// EXIT trap would not be heard. On one line, because bash counts the lines of the text from here. Negated, so that
// errexit acts inside the text but not on its end. Verbose goes off at once: bash would show the next line of ours.
const EVALUATE =
  `! \\builtin eval "$__hf_t" 0<"$__hf_i" 1>&71- 2>&72- 70<&- 73>&- 74<&- 75>&-; ` +
  `__hf_rc=\${PIPESTATUS[0]} __hf_v=$-; \\unset -f builtin; \\builtin set +v`;
// The only way to make bash count lines anew: a failed assignment to a read-only variable leaves the counter as its
// arithmetic set it. In POSIX mode such a failure would end the shell.
const COUNT_LINES_ANEW = `{ [[ -o posix ]] || PPID=$((LINENO=0)); } ${QUIETLY}`;
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

export const SAVE = [`{ \\builtin eval "$__hf_save"; } ${QUIETLY}`, COUNT_LINES_ANEW];

/** What the file of a command holds: parts without a NUL, each ended by one. */
export function commandFile(order: ShellOrder, facts: { dir: string }): string {
  const input = order.stdin === undefined ? "/dev/null" : join(facts.dir, "stdin");
  return [order.marker, input, order.cd ?? "", order.text, ""].join("\0");
}

/**
 * One command: its text is in a file, and finds the status of the text before it in `$?`. Short, because bash reads a pipe
 * byte by byte, which is a third of the time that a short command takes.
 */
export function command(facts: { n: number; status: number }): string[] {
  const evaluate = facts.status === 0 ? EVALUATE : evaluateAfter(facts.status);
  return [
    `{ __hf_n=${facts.n}; \\builtin eval "$__hf_load"; ${evaluate}; } ${QUIETLY}`,
    "", // after a text with an open quote, bash takes no reserved word at the beginning of the next line
    `{ __hf_q=$?; \\unset -f builtin; \\builtin eval "$__hf_end"; } ${QUIETLY}`,
    COUNT_LINES_ANEW,
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
