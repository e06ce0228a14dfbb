import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, statSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { InstanceRef } from "@holdfast/core";
import { Machine } from "../../fixtures/machine.ts";
import { fullNetworkProblem } from "./network.ts";

const networks = fullNetworkProblem() === undefined ? (["none", "full"] as const) : (["none"] as const);

for (const network of networks) {
  describe(`inside a sandbox with network ${network}`, () => {
    let machine: Machine;
    let box: InstanceRef;
    let other: InstanceRef;
    const inBox = (script: string, ...args: string[]) =>
      machine.run(box, "bash", "-c", script, "bash", ...args);

    beforeAll(async () => {
      machine = await Machine.open();
      process.env.HOLDFAST_LEAK = "from the server";
      box = await machine.launch({ network, env: { GREETING: "hello" } });
      other = await machine.launch({ network });
      delete process.env.HOLDFAST_LEAK;
      await machine.run(other, "bash", "-c", "echo other > /workspace/secret; echo other > /tmp/secret");
    });
    afterAll(() => machine.close());

    test("the user has a home, a workspace, temporary space, and the host's programs", async () => {
      const ran = await inBox(
        `id -un; hostname; echo $HOME $PWD $GREETING $LANG; getent hosts localhost | cut -d' ' -f1
         for d in /workspace /home/user /tmp /var/tmp /dev/shm; do echo x > $d/file && echo $d; done
         script -qc 'tty > /dev/null && echo terminal' /dev/null`,
      );
      expect(ran).toEqual({
        exitCode: 0,
        stdout:
          "user\nbox\n/home/user /workspace hello C.UTF-8\n::1\n/workspace\n/home/user\n/tmp\n/var/tmp\n/dev/shm\nterminal\r\n",
        stderr: "",
      });
    });

    test("the host's secrets, other sandboxes and the data dir are not there", async () => {
      const token = join(machine.dir, "token");
      writeFileSync(token, "secret");
      chmodSync(token, 0o644);
      const paths = [
        token,
        machine.dir,
        machine.dataDir,
        join(machine.dataDir, "sandboxes", other.sandboxId, "workspace/secret"),
        "/etc/shadow",
        "/etc/ssh",
        "/etc/ssl/private",
        "/root",
        "/run/docker.sock",
        "/var/lib",
        "/sys",
        "/proc/1/root/root",
        "/tmp/secret",
      ];
      const ran = await inBox(
        'for path; do [ -e "$path" ] && echo "$path"; done; ls -A /run /tmp/..',
        ...paths,
      );
      expect(ran.stdout.split("\n").filter((line) => paths.includes(line))).toEqual([]);
      expect((await inBox("grep -rl other /workspace /home /tmp /var 2>/dev/null")).stdout).toBe("");
    });

    test("nothing outside its own directories can be written", async () => {
      const paths = [
        "/",
        "/etc",
        "/usr",
        "/usr/bin",
        "/usr/local",
        "/dev",
        "/run",
        "/.holdfast",
        "/.holdfast/bin",
        "/proc/sys/kernel",
        "/var",
        "/home",
      ];
      const ran = await inBox(
        'for dir; do touch "$dir/intruder" 2> /dev/null && echo "$dir"; done',
        ...paths,
      );
      expect(ran.stdout).toBe("");
      expect((await inBox("echo x >> /.holdfast/bin/keeper")).exitCode).not.toBe(0);
      expect(
        (await inBox("for f in /.holdfast/cgroup/*; do echo 1 > $f && echo $f; done 2> /dev/null")).stdout,
      ).toBe("");
    });

    test("only its own processes can be seen", async () => {
      const { stdout } = await inBox("cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
      expect(stdout).toContain("/.holdfast/bin/keeper");
      expect(stdout).not.toContain(process.execPath);
      expect(stdout).not.toContain(other.sandboxId);
      expect(stdout).not.toContain("bwrap");
      expect((await inBox("ls -d /proc/[0-9]* | wc -l")).stdout.trim()).toMatch(/^[2-5]$/);
    });

    test("it is nobody on the host", async () => {
      const pid = await machine.keeperPid(box);
      const uid = statSync(`/proc/${pid}`).uid;
      if (process.getuid?.() === 0) {
        expect(uid).toBeGreaterThanOrEqual(0x7000_0000);
        expect(statSync(`/proc/${await machine.keeperPid(other)}`).uid).not.toBe(uid);
      } else {
        expect(uid).toBe(process.getuid?.() ?? -1);
      }
      const file = statSync(join(machine.dataDir, "sandboxes", box.sandboxId, "workspace/file"));
      expect(file.uid).toBe(uid);
      const { stdout } = await inBox("grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status");
      expect(stdout.replace(/\t/g, " ")).toBe(
        "CapPrm: 0000000000000000\nCapEff: 0000000000000000\nCapBnd: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n",
      );
    });

    // Numbers of system calls on x86_64 and aarch64.
    const refused = [
      { call: "keyctl", number: [250, 219] },
      { call: "add_key", number: [248, 217] },
      { call: "bpf", number: [321, 280] },
      { call: "perf_event_open", number: [298, 241] },
      { call: "userfaultfd", number: [323, 282] },
      { call: "mount", number: [165, 40] },
      { call: "umount2", number: [166, 39] },
      { call: "pivot_root", number: [155, 41] },
      { call: "setns", number: [308, 268] },
      { call: "open_by_handle_at", number: [304, 265] },
      { call: "io_uring_setup", number: [425, 425] },
      { call: "reboot", number: [169, 142] },
      { call: "init_module", number: [175, 105] },
      { call: "settimeofday", number: [164, 170] },
      { call: "fsopen", number: [430, 430] },
    ];
    test.each(refused)("the kernel refuses $call", async ({ number }) => {
      const ran = await inBox(
        'perl -e \'$! = 0; syscall($ARGV[0] + 0, 0, 0, 0, 0, 0); print $!{EPERM} ? "EPERM" : "$!"\' "$1"',
        String(number[process.arch === "arm64" ? 1 : 0]),
      );
      expect(ran).toEqual({ exitCode: 0, stdout: "EPERM", stderr: "" });
    });

    test("no further namespaces, no mounts, no debugging of the host; but debugging inside", async () => {
      expect((await inBox("unshare -U true")).exitCode).not.toBe(0);
      expect((await inBox("unshare -n true")).exitCode).not.toBe(0);
      expect((await inBox("mount -t tmpfs tmpfs /tmp")).exitCode).not.toBe(0);
      const attach = (pid: string) =>
        inBox(
          'sleep 5 > /dev/null 2>&1 & perl -e \'exit(syscall($ARGV[0] + 0, 0x4206, ($ARGV[1] || $ARGV[2]) + 0, 0, 0) < 0)\' "$1" "$2" $!',
          process.arch === "arm64" ? "117" : "101",
          pid,
        );
      expect((await attach(String(process.pid + 100_000))).exitCode).toBe(1);
      expect((await attach("0")).exitCode).toBe(0);
    });

    test("killing everything inside does not end the keeper", async () => {
      await inBox("kill -9 -1");
      expect((await inBox("echo alive")).stdout).toBe("alive\n");
    });

    test("nothing of the server's environment or of its open files gets in", async () => {
      expect((await inBox("env | cut -d= -f1 | sort | tr '\\n' ' '")).stdout).toBe(
        "GREETING HOME LANG LOGNAME PATH PWD SHELL SHLVL USER _ ",
      );
      const own = (await machine.ask(box, "self")) as { environment: string[]; files: string[] };
      expect(own.environment.filter((name) => name !== "PWD")).toEqual([]);
      const known = /^(\/dev\/null|anon_inode:.*|pipe:.*|socket:.*|.*\/launch\.log|\/.*urandom)$/;
      expect(own.files.filter((file) => !known.test(file))).toEqual([]);
      expect(await machine.ask(box, "boot")).toMatchObject({ cwd: "/workspace", sandboxId: box.sandboxId });
    });

    test("the host's services cannot be reached, by whatever address", async () => {
      const server = Bun.serve({ port: 0, hostname: "0.0.0.0", fetch: () => new Response("host") });
      const server6 = Bun.serve({
        port: server.port ?? 0,
        hostname: "::1",
        fetch: () => new Response("host"),
      });
      const unix = Bun.serve({ unix: join(machine.dir, "s.sock"), fetch: () => new Response("host") });
      chmodSync(join(machine.dir, "s.sock"), 0o777);
      const abstract = `holdfast-test-${process.pid}`;
      const abstractServer = Bun.serve({ unix: `\0${abstract}`, fetch: () => new Response("host") });
      try {
        const own = Object.values(networkInterfaces()).flatMap((list) =>
          (list ?? []).map(({ address }) => address),
        );
        const addresses = [...own, "127.0.0.1", "::1"].filter((address) => !address.startsWith("fe80"));
        for (const address of addresses) {
          const ran = await inBox('timeout 3 bash -c "exec 3<>/dev/tcp/$1/$2"', address, String(server.port));
          expect({ address, reached: ran.exitCode === 0 }).toEqual({ address, reached: false });
        }
        const dial = `use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); my $n = $ARGV[0]; $n =~ s/^@/\\0/;
          exit !connect(S, pack("S a*", AF_UNIX, $n))`;
        expect((await machine.run(box, "perl", "-e", dial, join(machine.dir, "s.sock"))).exitCode).toBe(1);
        expect((await machine.run(box, "perl", "-e", dial, `@${abstract}`)).exitCode).toBe(1);
        expect(await Bun.spawn(["perl", "-e", dial, `@${abstract}`]).exited).toBe(0);
      } finally {
        await Promise.all([server, server6, unix, abstractServer].map((each) => each.stop(true)));
      }
    });
  });
}
