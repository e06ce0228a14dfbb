// A server in a sandbox: started, waited for, visited from outside, and followed.
import { Sandbox } from "holdfast";

const sandbox = await Sandbox.create({ network: "none", onIdle: "remove" });
await sandbox.files.write("/workspace/site/index.html", "<h1>hello from a sandbox</h1>", { parents: true });

const server = await sandbox.startProcess("python3 -u -m http.server 8000 --bind 127.0.0.1", {
  cwd: "/workspace/site",
});
await server.waitForPort(8000);
const { url } = await sandbox.ports.expose(8000);
// `*.localhost` is this machine in every browser; not every system's resolver knows that, so we say it ourselves.
const { host, port } = new URL(url);
const page = await fetch(`http://127.0.0.1:${port}/`, { headers: { Host: host } });
console.log(page.status, (await page.text()).trim());

const { match } = await server.waitForLog(/"GET (\S+)/);
console.log("visited:", match[1]);
await sandbox.delete({ force: true });
