import { expect, test } from "bun:test";
import { gathered, logTo } from "./log.ts";

function listening() {
  const written: string[] = [];
  let exit = () => {};
  const sink = {
    write: (text: string) => void written.push(text),
    writeLast: (text: string) => void written.push(`last: ${text}`),
  };
  const lines = gathered(sink, {
    onExit: (flush) => {
      exit = flush;
    },
  });
  return { written, log: logTo(lines, { level: "info" }), exit: () => exit() };
}

const messages = (text: string | undefined) =>
  (text ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).msg);

test("lines are written together, a moment later", async () => {
  const { written, log } = listening();
  log.info("one");
  log.info("two");
  expect(written).toEqual([]);
  while (written.length === 0) await Bun.sleep(1);
  expect(written.map(messages)).toEqual([["one", "two"]]);
});

test("a warning or an error is written at once, with what came before it", () => {
  const { written, log } = listening();
  log.info("one");
  log.warn("two");
  log.error("three");
  expect(written.map(messages)).toEqual([["one", "two"], ["three"]]);
});

test("what waits is written when the process ends", () => {
  const { written, log, exit } = listening();
  log.info("last");
  exit();
  expect(written).toHaveLength(1);
  expect(written[0]).toStartWith("last: ");
  expect(messages(written[0]?.slice("last: ".length))).toEqual(["last"]);
});

test("a real process that exits has written all of it", async () => {
  const script = `import { createLog } from ${JSON.stringify(`${import.meta.dir}/log.ts`)};
    const log = createLog({ level: "info", forPerson: false });
    for (let i = 0; i < 500; i++) log.info("line");
    process.exit(3);`;
  const child = Bun.spawn([process.execPath, "-e", script], { stderr: "pipe" });
  expect(messages(await new Response(child.stderr).text())).toHaveLength(500);
  expect(await child.exited).toBe(3);
});
