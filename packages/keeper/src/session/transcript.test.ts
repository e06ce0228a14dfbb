import { expect, test } from "bun:test";
import { openSync, readdirSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { openDescriptors, testSessions } from "./test-sessions.ts";

/** A small generator with a seed: a failure can be had again. */
function randoms(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("200 texts of random bytes leave the session as it was", async () => {
  const random = randoms(20261115);
  await using all = testSessions();
  const session = await all.create({ commandTimeoutMs: 3000 });
  await session.run("KEPT='a b'; k() { echo k; }; cd /usr/lib");
  const syntax = "'\"`$(){}[]<>|&;\\!#*?~ \n\t=0aif";
  for (let i = 0; i < 200; i++) {
    const length = 1 + random(60);
    // Half of them of any bytes, half of those that mean something to a shell; never a path, so nothing is written.
    const bytes = Array.from({ length }, () =>
      i % 2 === 0 ? 1 + random(255) : syntax.charCodeAt(random(syntax.length)),
    );
    const text = Buffer.from(bytes).toString("latin1").replaceAll(">", "(");
    await session.run(text);
    const { stdout, exitCode } = await session.run('echo "ok $KEPT"; k');
    expect([text, stdout, exitCode]).toEqual([text, "ok a b\nk\n", 0]);
  }
});

/** What a person or an agent types in a session, three hundred times, from a few dozen patterns. */
function typedCommands(): string[] {
  const random = randoms(7);
  const patterns: readonly ((n: number) => string)[] = [
    (n) => `X${n % 9}=${n}; echo $X${n % 9}`,
    (n) => `export E${n % 5}='v ${n}'; printenv E${n % 5}`,
    () => "echo $?",
    () => "false",
    () => "(exit 7)",
    (n) => `mkdir -p d${n % 4} && cd d${n % 4} && basename "$PWD"`,
    () => 'cd - >/dev/null; cd ..; basename "$PWD"',
    () => 'cd "$BASE"',
    (n) => `f${n % 6}() { local a=$1; echo "f ${n} $a $#"; return ${n % 3}; }`,
    (n) => `f${n % 6} 'a b' c`,
    (n) => `ARR[${n % 7}]=${n}; echo "$\{ARR[@]}" "$\{#ARR[@]}"`,
    (n) => `declare -A MAP; MAP[k${n % 3}]=${n}; echo "$\{MAP[k0]}" "$\{!MAP[*]}"`,
    (n) => `set -- ${n} "b c"; echo $# "$2"; shift; echo "$1"`,
    () => 'for i in 1 2 3; do echo -n "$i "; done; echo',
    () => 'while read -r a b; do echo "$b-$a"; done <<< "x y z"',
    () => "cat <<EOF\n$X1 and $(echo sub)\nEOF",
    () => "echo out; echo err >&2; echo out2",
    () => "printf 'a\\0b\\377' | od -An -tx1",
    () => "nosuchcommand_at_all",
    () => "ls /nonexistent_at_all",
    () => "if [[ abc =~ b(.) ]]; then echo ${BASH_REMATCH[1]}; fi",
    () => "echo ${BASH_REMATCH[1]:-none}",
    (n) => `shopt -s nullglob; echo [*.nope${n}]; shopt -u nullglob`,
    () => "set -o pipefail; false | true; echo $?; set +o pipefail",
    () => "set -u; echo ${X1:-unset}; set +u",
    () => "umask 0027; umask; umask 022",
    () => "trap 'echo usr1' USR1; kill -USR1 $$; trap - USR1",
    () => "trap -p",
    () => "x=$(echo inner; exit 3); echo $? $x",
    () => "( cd /; X1=sub; pwd ); echo $X1",
    () => "true && false; echo $?; ! true; echo $?",
    () => "shopt -s expand_aliases; alias say='echo said'",
    () => "say hello",
    () => "exec 5>log5; echo five >&5; exec 5>&-; cat log5; rm log5",
    () => "echo 1 2 3 | { read a b; echo $b; }; echo ${a:-none}",
    () => "sleep 0.01 & wait $!; echo waited $?",
    () => "cat <(echo one) <(echo two)",
    () => "readonly RO1=1 2>/dev/null; RO1=2; echo not reached",
    () => "echo ${UNSET?with a message} 2>/dev/null | cat",
    () => "local z=1",
    () => "return 3",
    () => "break",
    () => "let n=n+1; echo $n; ((n > 3)); echo $?",
    () => "case $n in 1) echo one;; [2-4]) echo few;; *) echo many;; esac",
    () => "f() { echo 'no end'",
    () => "echo 'open",
    () => ")",
    () => "declare -p X1 ARR MAP 2>&1",
    () => 'echo "$*" $# $0',
    () => "eval 'echo evaluated; Y=1'; echo $Y",
    () => ". /dev/stdin <<< 'echo sourced; Z=2'; echo $Z",
  ];
  return Array.from({ length: 300 }, (_, n) => patterns[random(patterns.length)]?.(n) ?? ":");
}

const FINAL_STATE = [
  "declare -p | grep -Ev ' (BASH|BASHPID|BASH_[A-Z]+|EPOCH[A-Z]+|RANDOM|SRANDOM|SECONDS|LINENO|PPID|PIPESTATUS|_|__hf_\\w+|HOLDFAST_\\w+|SHLVL|PWD|OLDPWD|HOME|BASE|HISTCMD|rc)(=|$)'",
  'declare -f; alias; shopt -p; set +o; umask; trap -p; basename "$PWD"; echo "$@"',
];

test("the same 300 commands in a bash of its own: same output, same errors, same codes, same state", async () => {
  await using all = testSessions();
  const texts = [...typedCommands(), ...FINAL_STATE];
  const base = { ours: join(all.dir, "ours/x/y"), its: join(all.dir, "its/x/y") };
  for (const dir of Object.values(base)) await mkdir(dir, { recursive: true });

  const session = await all.create({ cwd: base.ours, env: { BASE: base.ours, HOME: "/" } });
  const ours: Answer[] = [];
  for (const text of texts) {
    const { stdout, stderr, exitCode, shellExited } = await session.run(text);
    expect([text, shellExited]).toEqual([text, false]);
    ours.push({ text, stdout: comparable(stdout), stderr: comparable(stderr), exitCode });
  }
  const its = await inABashOfItsOwn(texts, { dir: all.dir, cwd: base.its });
  for (const [i, answer] of its.entries()) expect(ours[i]).toEqual(answer);
});

interface Answer {
  readonly text: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

/** Each text in its own file, evaluated by a bash that reads a plain script; output of each into files of its own. */
async function inABashOfItsOwn(texts: string[], at: { dir: string; cwd: string }): Promise<Answer[]> {
  const path = (i: number, what: string) => join(at.dir, `t${i}.${what}`);
  for (const [i, text] of texts.entries()) await Bun.write(path(i, "text"), text);
  const script = texts.flatMap((_, i) => [
    `(exit $\{rc:-0}); eval "$(cat ${path(i, "text")}; exit $\{rc:-0})" </dev/null >${path(i, "out")} 2>${path(i, "err")}`,
    `rc=$?; echo $rc >${path(i, "code")}`,
  ]);
  await Bun.write(join(at.dir, "script"), `${script.join("\n")}\n`);
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", HOME: "/", BASE: at.cwd };
  const bash = Bun.spawn(["bash"], {
    cwd: at.cwd,
    env,
    stdio: [openSync(join(at.dir, "script"), "r"), "ignore", "ignore"],
  });
  await bash.exited;
  return Promise.all(
    texts.map(async (text, i) => ({
      text,
      stdout: comparable(await readFile(path(i, "out"), "utf8")),
      stderr: comparable(await readFile(path(i, "err"), "utf8")),
      exitCode: Number(await readFile(path(i, "code"), "utf8")),
    })),
  );
}

/** Line numbers count from the beginning of a script there, and of a text here. */
function comparable(output: string): string {
  return output.replaceAll(/line \d+/g, "line N");
}

const MANY = Number(process.env.HOLDFAST_SESSION_COMMANDS ?? 1500);

test(`${MANY} commands: no growth of descriptors, files or memory`, async () => {
  await using all = testSessions();
  const session = await all.create();
  await session.run("exit 1"); // a shell that took over has a file more
  await session.run("n=0");
  const look = async () => {
    const { stdout } = await session.run("grep VmRSS /proc/$$/status; ls /proc/$$/fd | wc -l");
    const [kB = 0, shellFds = 0] = stdout.match(/\d+/g)?.map(Number) ?? [];
    await session.session.settled;
    const files = readdirSync(join(all.dir, "state/sessions", session.session.facts.sessionId));
    return { kB, shellFds, files, ourFds: openDescriptors(), processes: all.processes().length };
  };
  for (let i = 0; i < 100; i++) await session.run("n=$((n+1))");
  await session.session.settled;
  const before = await look();
  for (let i = 0; i < MANY; i++)
    await session.run(i % 50 === 0 ? "exit 1" : i % 10 === 0 ? "'" : "n=$((n+1)); true");
  expect((await session.run("(( n > 100 )) && echo grown")).stdout).toBe("grown\n");
  const after = await look();
  expect(after.files).toEqual(before.files);
  // The shell may or may not have closed its end of the pipe to the `wc` that counts.
  expect(after.shellFds).toBeLessThanOrEqual(before.shellFds + 1);
  expect(after.kB).toBeLessThan(before.kB + 1024);
  // A pipe more or less is that of a command that is just being looked at.
  expect(after.ourFds).toBeLessThanOrEqual(before.ourFds + 2);
  // One waits for the shell that took over; one may be dying.
  expect(after.processes).toBeLessThanOrEqual(before.processes + 2);
}, 600_000);
