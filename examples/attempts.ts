// One state, several attempts: each fork has its own copy of the files. The best one is kept.
import { Sandbox } from "holdfast";

const sandbox = await Sandbox.create({ network: "none", onIdle: "remove" });
await sandbox.files.write("/workspace/words", "pear\napple\nfig\n");

const commands = ["sort words", "sort -r words", "tac words"];
const forks = await sandbox.fork(commands.length);
const results = await Promise.all(
  forks.map(async (fork, index) => {
    const { stdout } = await fork.exec(`${commands[index]} > sorted && mv sorted words && cat words`, {
      cwd: "/workspace",
    });
    return stdout.trim().split("\n").join(" ");
  }),
);
for (const result of results) console.log(result);
console.log("the original:", (await sandbox.files.readText("/workspace/words")).trim().split("\n").join(" "));
await Promise.all([sandbox, ...forks].map((one) => one.delete({ force: true })));
