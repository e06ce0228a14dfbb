import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestSession, type TestSessions, testSessions } from "./test-sessions.ts";

/**
 * Texts that try to hang, poison or swallow. After each one `echo ok` prints ok and nothing else, with status 0, and the
 * state from before is as it was. `ends` is the exit code; with `shell: "exited"` the shell ended with the text, and what
 * the text did is undone.
 */
interface Case {
  readonly text: string;
  readonly exitCode: number;
  readonly shell?: "exited";
  /** If given, exactly this; else whatever bash says. */
  readonly stdout?: string;
  /** Undoes what the text rightly changed for later commands. */
  readonly undo?: string;
}

const cases: readonly Case[] = [
  // What a parser could wait for the rest of.
  { text: "'", exitCode: 2 },
  { text: '"', exitCode: 2 },
  { text: "echo `", exitCode: 2 },
  { text: "echo ${", exitCode: 2 },
  { text: "cat <<EOF\nhello", exitCode: 0, stdout: "hello\n" },
  { text: "cat <<'EOF'", exitCode: 0, stdout: "" },
  { text: "if true; then", exitCode: 2 },
  { text: "while true; do", exitCode: 2 },
  { text: "case x in", exitCode: 2 },
  { text: "f() {", exitCode: 2 },
  { text: "(", exitCode: 2 },
  { text: ")", exitCode: 2 },
  { text: "{", exitCode: 2 },
  { text: "}", exitCode: 2 },
  { text: "fi", exitCode: 2 },
  { text: "done", exitCode: 2 },
  { text: "true &&", exitCode: 2 },
  { text: "true |", exitCode: 2 },
  { text: "echo a \\", exitCode: 0, stdout: "a \\\n" },
  { text: "#", exitCode: 0, stdout: "" },
  { text: "\n\n", exitCode: 0, stdout: "" },
  { text: ":\r", exitCode: 127 },
  { text: "echo one\n'", exitCode: 2, stdout: "one\n" },
  // What ends or leaves something.
  { text: "return", exitCode: 2 },
  { text: "return 3", exitCode: 2 },
  { text: "break 99", exitCode: 0 },
  { text: "continue 99", exitCode: 0 },
  { text: "exit", exitCode: 0, shell: "exited" },
  { text: "false; exit", exitCode: 1, shell: "exited" },
  { text: "exit 3", exitCode: 3, shell: "exited" },
  { text: "X=changed; exit 255", exitCode: 255, shell: "exited" },
  { text: "echo gone; exit 7", exitCode: 7, shell: "exited", stdout: "gone\n" },
  { text: "logout", exitCode: 1 },
  { text: "exec bash", exitCode: 0, shell: "exited" },
  { text: "exec bash -c 'exit 9'", exitCode: 9, shell: "exited" },
  { text: "exec /nonexistent", exitCode: 127, shell: "exited" },
  { text: "exec true", exitCode: 0, shell: "exited" },
  { text: "kill -9 $$", exitCode: 137, shell: "exited" },
  { text: "kill -TERM $$; sleep 1", exitCode: 143, shell: "exited" },
  { text: "kill -SEGV $$; sleep 1", exitCode: 139, shell: "exited" },
  { text: "kill 0; sleep 1", exitCode: 143, shell: "exited" },
  { text: "kill -9 0", exitCode: 137, shell: "exited" },
  { text: "kill -HUP $BASHPID; sleep 1", exitCode: 129, shell: "exited" },
  { text: "trap 'echo bye' EXIT; exit 4", exitCode: 4, shell: "exited", stdout: "bye\n" },
  { text: "trap 'exit 5' ERR; false", exitCode: 5, shell: "exited" },
  { text: "set -e; false", exitCode: 1, shell: "exited" },
  { text: "set -eu; echo $UNKNOWN_NAME", exitCode: 1, shell: "exited" },
  { text: "set -u; echo ${UNKNOWN_NAME?}", exitCode: 1, shell: "exited" },
  { text: "set -t", exitCode: 0, shell: "exited" },
  { text: "trap 'exit 6' DEBUG; :", exitCode: 6, shell: "exited" },
  // What stays, and must not matter.
  { text: "set -e", exitCode: 0, undo: "set +e" },
  { text: "set -u", exitCode: 0, undo: "set +u" },
  { text: "set -a", exitCode: 0, undo: "set +a" },
  { text: "set -C", exitCode: 0, undo: "set +C" },
  { text: "set -f", exitCode: 0, undo: "set +f" },
  { text: "set -m", exitCode: 0, undo: "set +m" },
  { text: "set -o posix", exitCode: 0, undo: "set +o posix" },
  { text: "set -o pipefail", exitCode: 0, undo: "set +o pipefail" },
  { text: "set -k", exitCode: 0, undo: "set +k" },
  { text: "IFS=", exitCode: 0, undo: "unset IFS" },
  { text: "IFS=0123456789hf_", exitCode: 0, undo: "unset IFS" },
  { text: "unset IFS", exitCode: 0 },
  { text: "unset PATH", exitCode: 0, undo: "PATH=/usr/local/bin:/usr/bin:/bin" },
  { text: "PATH=/nonexistent", exitCode: 0, undo: "PATH=/usr/local/bin:/usr/bin:/bin" },
  { text: "TMOUT=1", exitCode: 0, undo: "unset TMOUT" },
  { text: "BASH_ENV=/nonexistent; export BASH_ENV", exitCode: 0, undo: "unset BASH_ENV" },
  { text: "export LC_ALL=C", exitCode: 0, undo: "unset LC_ALL" },
  { text: "GLOBIGNORE='*'", exitCode: 0, undo: "unset GLOBIGNORE" },
  { text: "shopt -s failglob nullglob extglob", exitCode: 0, undo: "shopt -u failglob nullglob extglob" },
  { text: "PS4='$(kill -9 $$)'", exitCode: 0, undo: "PS4='+ '" },
  { text: "exec >/dev/null", exitCode: 0 },
  { text: "exec 2>&1 >/dev/null; echo lost", exitCode: 0, stdout: "" },
  { text: "exec <&-", exitCode: 0 },
  { text: "exec >&-; echo x", exitCode: 1, stdout: "" },
  { text: "exec 3>&-", exitCode: 0 },
  { text: "exec 70>&- 71>&- 72>&- 73>&- 74<&- 75>&-", exitCode: 0 },
  { text: "exec 250>&- 255>&-", exitCode: 0 },
  { text: 'for i in {3..30}; do eval "exec $i</dev/null"; done', exitCode: 0 },
  { text: "builtin() { echo mine; }", exitCode: 0 },
  { text: "eval() { echo mine; }", exitCode: 0, undo: "unset -f eval" },
  {
    text: "printf() { echo mine; }; read() { :; }; mapfile() { :; }",
    exitCode: 0,
    undo: "unset -f printf read mapfile",
  },
  {
    text: "set() { :; }; trap() { :; }; declare() { :; }; kill() { :; }",
    exitCode: 0,
    undo: "unset -f set trap declare kill",
  },
  {
    text: "command() { :; }; exec() { :; }; shopt() { :; }",
    exitCode: 0,
    undo: "unset -f command exec shopt",
  },
  { text: "unset() { :; }", exitCode: 0, undo: "builtin unset -f unset" },
  { text: "__hf_ret() { exit 1; }", exitCode: 0 },
  {
    text: "shopt -s expand_aliases; alias builtin=false eval=false",
    exitCode: 0,
    undo: "unalias builtin eval; shopt -u expand_aliases",
  },
  {
    text: "shopt -s expand_aliases; alias if=false then=false fi=false '{'=false '!'=false '[['=false",
    exitCode: 0,
    undo: "unalias if then fi '{' '!' '[['; shopt -u expand_aliases",
  },
  // Flags in capitals that a careless look would take for those that make a shell deaf.
  { text: "shopt -s nocasematch; set -TE", exitCode: 0, undo: "shopt -u nocasematch; set +TE" },
  { text: "readonly R=1; R=2; echo no", exitCode: 1, stdout: "" },
  { text: "BASHPID=1; PPID=1; UID=5; echo no", exitCode: 1, stdout: "" },
  { text: "trap 'echo chld' CHLD", exitCode: 0, undo: "trap - CHLD" },
  { text: "trap '' TERM HUP INT PIPE", exitCode: 0, undo: "trap - TERM HUP INT PIPE" },
  { text: "trap : EXIT", exitCode: 0, undo: "trap - EXIT" },
  { text: "trap 'n=1' DEBUG", exitCode: 0, undo: "trap - DEBUG" },
  { text: "trap 'n=1' RETURN ERR", exitCode: 0, undo: "trap - RETURN ERR" },
  { text: "stty sane", exitCode: 1 },
  { text: "tty", exitCode: 1, stdout: "not a tty\n" },
  { text: "read x", exitCode: 1 },
  { text: "cat", exitCode: 0, stdout: "" },
  { text: "ulimit -c 0", exitCode: 0 },
  { text: "ulimit -f 1000000", exitCode: 0 },
  { text: "ulimit -n 200", exitCode: 0 },
  { text: "umask 777", exitCode: 0, undo: "umask 027" },
  { text: "coproc cat", exitCode: 0, undo: "kill $COPROC_PID; wait" },
  { text: "sleep 30 & disown", exitCode: 0, undo: "kill $!" },
  { text: "hash -r; enable -n test; enable test", exitCode: 0 },
  { text: "LINENO=1000", exitCode: 0 },
  { text: "unset BASHOPTS SHELLOPTS; unset LINENO", exitCode: 0 },
  { text: "suspend", exitCode: 1 },
  { text: "fg; bg; jobs; wait; times >/dev/null", exitCode: 0 },
  { text: "history; fc -l; set -o history; set +o history", exitCode: 0, undo: ":" },
  // What makes the shell deaf: noticed, and undone.
  { text: "set -n", exitCode: 137, shell: "exited" },
  { text: "set -r", exitCode: 137, shell: "exited" },
  { text: "enable -n builtin", exitCode: 137, shell: "exited" },
  { text: "enable -n eval printf", exitCode: 137, shell: "exited" },
  { text: "unset() { :; }; builtin() { :; }", exitCode: 137, shell: "exited" },
  { text: "shopt -s extdebug; trap false DEBUG", exitCode: 137, shell: "exited" },
  { text: "__hf_n=7 __hf_d=/nonexistent", exitCode: 137, shell: "exited" },
  { text: "ulimit -n 8", exitCode: 0, shell: "exited" },
];

let all: TestSessions;
let session: TestSession;
beforeAll(async () => {
  all = testSessions();
  session = await all.create();
  await session.run("KEPT='a  b'; declare -A MAP=([k]='v v'); ARR=(1 '2 3'); export EXPORTED=e; umask 027");
  await session.run("f() { echo in f \"$@\"; }; alias kept='echo alias'; set -- p1 'p 2'; cd /usr/lib");
});
afterAll(async () => {
  await all[Symbol.asyncDispose]();
  expect(all.processes()).toEqual([]);
});

const STATE =
  'echo "$KEPT|${MAP[k]}|${ARR[1]}|$(printenv EXPORTED)|$(umask)|$(f x)|$(alias kept)|$*|$PWD|$-|$SHELLOPTS"';

for (const { text, exitCode, shell, stdout, undo } of cases) {
  test(JSON.stringify(text), async () => {
    const before = await session.run(STATE);
    const result = await session.run(text, { timeoutMs: 20_000 });
    const ok = await session.run("echo ok");
    if (undo !== undefined) await session.run(undo);
    const after = await session.run(STATE);
    expect({ exitCode: result.exitCode, exited: result.shellExited, kept: result.stateKept }).toEqual({
      exitCode,
      exited: shell === "exited",
      kept: shell !== "exited",
    });
    if (stdout !== undefined) expect(result.stdout).toBe(stdout);
    expect([ok.stdout, ok.stderr, ok.exitCode]).toEqual(["ok\n", "", 0]);
    expect(ok.restored?.from).toBe(shell === "exited" ? "savepoint" : undefined);
    expect(after.stdout).toBe(before.stdout);
  });
}

test("bash itself damages its memory at an open $(: the shell is made anew, with all of its state", async () => {
  const before = await session.run(STATE);
  for (const text of ["echo $(", "$(", 'echo "$(', "X=$(echo"]) {
    const { exitCode } = await session.run(text);
    expect([2, 134, 139]).toContain(exitCode);
    const ok = await session.run("echo ok");
    expect([ok.stdout, ok.stderr, ok.exitCode]).toEqual(["ok\n", "", 0]);
    expect(ok.restored).toMatchObject({ from: "savepoint", commandsLost: 0 });
  }
  expect((await session.run(STATE)).stdout).toBe(before.stdout);
});
