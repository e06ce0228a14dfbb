import { expect, test } from "bun:test";
import { accountIn, assertUser, plainAccount } from "./user.ts";

const texts = {
  "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnode:x:1001:1002::/home/node:/bin/sh\nodd:x:70000::::\n",
  "/etc/group": "root:x:0:\nstaff:x:50:node\n",
};
const none = { "/etc/passwd": "", "/etc/group": "" };

const cases = [
  ["node", texts, { uid: 1001, gid: 1002, name: "node" }],
  ["1001", texts, { uid: 1001, gid: 1002, name: "node" }],
  ["node:staff", texts, { uid: 1001, gid: 50, name: "node" }],
  ["node:7", texts, { uid: 1001, gid: 7, name: "node" }],
  ["4000", texts, { uid: 4000, gid: 4000, name: "user" }],
  ["odd", texts, { uid: 70000, gid: 70000, name: "odd" }],
  ["root", none, { uid: 0, gid: 0, name: "root" }],
  ["0", none, { uid: 0, gid: 0, name: "root" }],
] as const;

for (const [user, lists, account] of cases) {
  test(`user ${user}`, () => expect(accountIn(lists, user)).toEqual(account));
}

test("one that the image does not know is refused with those that it knows", () => {
  const hint = "It has: root, node, odd";
  expect(() => accountIn(texts, "nobody")).toThrow(expect.objectContaining({ code: "launch_failed", hint }));
  expect(() => accountIn(texts, "node:wheel")).toThrow(/no group wheel/);
});

test("numbers need no look into the image, and a plain user's server shares files with its own id alone", () => {
  expect(plainAccount("12:13", "any")).toEqual({ uid: 12, gid: 13, name: "user" });
  expect(plainAccount("12", "any")).toBeUndefined();
  expect(plainAccount(undefined, "mapped")).toEqual({ uid: 1000, gid: 1000, name: "user" });
  const other = { uid: (process.getuid?.() ?? 0) + 1, gid: 0, name: "" };
  expect(() => assertUser(other, "own")).toThrow(expect.objectContaining({ code: "unsupported" }));
  assertUser(other, "any");
  expect(() => assertUser({ uid: 2 ** 31, gid: 0, name: "" }, "any")).toThrow(/no such id/);
});
