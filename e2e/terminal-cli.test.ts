import { afterAll, beforeAll, expect, test } from "bun:test";
import { Sandbox } from "holdfast";
import { holdfastBin, TestServer } from "./harness.ts";

let server: TestServer;
let sandbox: Sandbox;

beforeAll(async () => {
  server = await TestServer.start();
  sandbox = await Sandbox.getOrCreate({ name: "cli" }, server.at);
});

afterAll(() => server.dispose());

/** A person at a terminal: a shell that runs one line, so that what the CLI leaves behind can be looked at. */
class Person {
  text = "";
  readonly child: Bun.Subprocess;
  #wake = () => {};

  constructor(line: string) {
    this.child = Bun.spawn(["bash", "--norc", "--noprofile", "-c", line], {
      env: {
        ...process.env,
        HF: holdfastBin,
        HOLDFAST_URL: server.url,
        HOLDFAST_TOKEN: server.token,
        TERM: "xterm",
      },
      terminal: {
        cols: 90,
        rows: 25,
        data: (_, bytes) => {
          this.text += new TextDecoder().decode(bytes);
          this.#wake();
        },
      },
    });
  }

  type(text: string): void {
    this.child.terminal?.write(text);
  }

  async sees(pattern: RegExp): Promise<void> {
    const deadline = Date.now() + 10_000;
    while (!pattern.test(this.text)) {
      if (Date.now() > deadline)
        throw new Error(`never came: ${pattern} in ${JSON.stringify(this.text.slice(-900))}`);
      await Promise.race([Bun.sleep(200), new Promise<void>((resolve) => (this.#wake = resolve))]);
    }
  }

  async ends(): Promise<number> {
    const code = await this.child.exited;
    this.child.terminal?.close();
    return code;
  }
}

/** Prints the terminal's settings before and after, and what came of it. */
const watched = (line: string) =>
  `a=$(stty -g); ${line}; code=$?; [ "$a" = "$(stty -g)" ] && echo "same $code"`;

test("sh: a shell of our size, whose exit code is ours, and our terminal as it was", async () => {
  const person = new Person(watched("$HF sh cli"));
  await person.sees(/\$ $/);
  person.type("stty size\r");
  await person.sees(/25 90/);
  person.child.terminal?.resize(70, 20);
  // The size travels by a signal, which what is typed may overtake.
  for (let asked = 0; asked < 50 && !/20 70/.test(person.text); asked++) {
    person.type("stty size\r");
    await Bun.sleep(50);
  }
  await person.sees(/20 70/);
  person.type("exit 5\r");
  await person.sees(/same 5/);
  await person.ends();
});

test("Ctrl-P Ctrl-Q detaches, attach comes back, and the screen is left as it was", async () => {
  const person = new Person(
    watched("$HF sh cli --id kept -- 'printf \"\\033[?1049h\\033[?25lfull\"; read x; exit 4'"),
  );
  await person.sees(/full/);
  person.type("\x10");
  person.type("\x11");
  await person.sees(/detached[\s\S]*holdfast attach cli kept[\s\S]*same 0/);
  // The cursor and the normal screen are back before anything else is said.
  const [shown = ""] = person.text.split("holdfast: detached");
  expect(shown.trimEnd().endsWith("\x1b[?25h\x1b[?1049l")).toBe(true);
  await person.ends();
  const again = new Person(watched("$HF attach cli kept"));
  await again.sees(/full/);
  again.type("\r");
  await again.sees(/same 4/);
  await again.ends();
});

test("what a program writes reaches our screen as it is, line feeds and all", async () => {
  const person = new Person(watched("$HF sh cli -- 'stty raw; printf \"a\\nb\\r\\nc\"; exit 0'"));
  await person.sees(/same 0/);
  expect(person.text).toContain("a\nb\r\nc");
  await person.ends();
});

test("a signal detaches us and leaves our terminal as it was; the program goes on", async () => {
  const person = new Person(watched("$HF sh cli --id term -- 'echo up; read x'"));
  await person.sees(/up/);
  const cli = Bun.spawnSync(["pgrep", "-P", String(person.child.pid)])
    .stdout.toString()
    .trim()
    .split("\n");
  for (const pid of cli) process.kill(Number(pid), "SIGTERM");
  await person.sees(/same 143/);
  await person.ends();
  const terminals = await sandbox.listTerminals();
  expect(terminals.find(({ terminalId }) => terminalId === "term")).toMatchObject({
    state: "running",
    viewers: 0,
  });
});

test("a restart of the server is told shortly, and the shell goes on", async () => {
  const person = new Person(watched("$HF sh cli"));
  await person.sees(/\$ $/);
  person.type("x=42; echo x is $x\r");
  await person.sees(/x is 42/);
  await server.signal("SIGKILL");
  await person.sees(/connection is lost/);
  await server.boot();
  await person.sees(/connected again/);
  person.type("exit $x\r");
  await person.sees(/same 42/);
  await person.ends();
});

test("what is piped is typed, and its end is Ctrl-D", async () => {
  const person = new Person(watched("printf 'one\\ntwo' | $HF sh cli -- cat | tr '\\n' ,"));
  await person.sees(/one\r,two(two)?[\s\S]*same 0/);
  await person.ends();
  const script = new Person(watched("echo 'exit 3' | $HF sh cli"));
  await script.sees(/same 3/);
  await script.ends();
});

test("who only watches cannot type, and leaves with Ctrl-C", async () => {
  const owner = await sandbox.terminal({
    id: "watched",
    command: "echo hello; read x; echo got $x; sleep 1000",
  });
  const person = new Person(watched("$HF attach --readonly cli watched"));
  await person.sees(/hello/);
  person.type("nonsense\r");
  await owner.write("real\r");
  await person.sees(/got real/);
  person.type("\x03");
  await person.sees(/same 0/);
  expect(person.text).not.toContain("nonsense");
  await person.ends();
  await owner.destroy();
});

test("mistakes are told with a way out", async () => {
  const cases: [line: string, told: RegExp][] = [
    ["$HF attach cli nothing", /there is no terminal "nothing"[\s\S]*hint:[\s\S]*same 125/],
    ["$HF sh cli -- no-such-program-at-all x", /no-such-program-at-all[\s\S]*hint:[\s\S]*same 125/],
    ["$HF sh clii", /no sandbox "clii"[\s\S]*Did you mean "cli"[\s\S]*same 125/],
    ["$HF sh cli --colour", /unknown option '--colour'[\s\S]*same 2/],
  ];
  for (const [line, told] of cases) {
    const person = new Person(watched(line));
    await person.sees(told);
    await person.ends();
  }
});
