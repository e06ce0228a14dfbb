import { expect, test } from "bun:test";
import { withAccount } from "./account.ts";

const cases = {
  "none there": ["", "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"],
  "one without our id": [
    "root:x:0:0:root:/root:/bin/bash",
    "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/sh\n",
  ],
  "our id under another name": ["root:x:0:0:::\nnode:x:1000:1000::/home/node:/bin/bash\n", undefined],
  "our name under another id": [
    "user:x:7:7:::\n",
    "user:x:7:7:::\nuser-1000:x:1000:1000::/home/user:/bin/sh\n",
  ],
} as const;

for (const [title, [before, after]] of Object.entries(cases)) {
  test(`passwd: ${title}`, () =>
    expect(withAccount("/etc/passwd", before, { uid: 1000, gid: 1000 })).toBe(after));
}

test("group", () =>
  expect(withAccount("/etc/group", "root:x:0:\n", { uid: 7, gid: 1000 })).toBe("root:x:0:\nuser:x:1000:\n"));
