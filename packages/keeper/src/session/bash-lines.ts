import { join } from "node:path";
import type { ShellOrder } from "./session-shell.ts";

/** The lines that a bash is fed; shell.bash explains them. */

const QUIETLY = "&>/dev/null";
// Here and not in shell.bash: with one more eval around it bash would not undo the group's redirection on exit, and an
// EXIT trap would not be heard. On one line, because bash counts the lines of the text from here. Negated, so that
// errexit acts inside the text but not on its end.
const EVALUATE =
  `! \\builtin eval "\${__hf_x[5]}" 0<"\${__hf_x[3]}" 1>&71- 2>&72- 70<&- 73>&- 74<&- 75>&-; ` +
  "__hf_r=${PIPESTATUS[0]}";
const END = `\\unset -f builtin; \\builtin eval "$__hf_z"`;
// The only way to make bash count lines anew: a failed assignment to a read-only variable leaves the counter as its
// arithmetic set it. In POSIX mode such a failure would end the shell.
const COUNT_LINES_ANEW = `{ [[ -o posix ]] || PPID=$((LINENO=0)); } ${QUIETLY}`;
// Bash sets these when it starts: what the user has unset of them must be unset again.
const SET_BY_BASH =
  "PATH IFS PS4 OPTERR OPTIND HOSTNAME HOSTTYPE MACHTYPE OSTYPE SHELL SHLVL TERM BASH OLDPWD";

/** The first line for a shell that was spawned; one that took over has its descriptors already. */
export const MOVE_DESCRIPTORS = "exec 71>&1 72>&2 73>&3- 74<&4- 75>&5- 70<&6-";

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

/** The last lines before the first command. */
export function save(n: number): string {
  return [`{ \\builtin eval "$__hf_save"; } ${QUIETLY}`, COUNT_LINES_ANEW, begun(n + 1)].join("\n");
}

/** What a command is, for `__hf_load`. */
export function commandParts(order: ShellOrder, facts: { dir: string; n: number; status: number }): string[] {
  const input = order.stdin === undefined ? "/dev/null" : join(facts.dir, "stdin");
  return [String(facts.n), String(facts.status), order.marker, input, order.cd ?? "", order.text];
}

/**
 * What begins a command and reads on after it. Bash reads a pipe byte by byte, which would be a third of the time that a
 * short command takes. So it has read the line of a command before that comes, all but its end; the end of the line is
 * the first byte here, and the line of the next command the last. A shell that has no such line takes no harm.
 */
export function command(n: number): string {
  return [
    "",
    "", // after a text with an open quote, bash takes no reserved word at the beginning of the next line
    `{ __hf_q=$?; ${END}; __hf_r= __hf_z=$__hf_end; } ${QUIETLY}`,
    COUNT_LINES_ANEW,
    begun(n + 1),
  ].join("\n");
}

function begun(n: number): string {
  return `{ __hf_n=${n}; \\builtin eval "$__hf_load" && \\builtin :; ${EVALUATE}; ${END}; } ${QUIETLY}`;
}

/** A text, too. */
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
