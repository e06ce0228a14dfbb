import { expect, test } from "bun:test";
import { type Direction, decide } from "./plan.ts";

const side = (id: string) => (id === "-" ? undefined : { id });

/** local, remote, base; then what is done up, down and both ways, without deletions and with them. */
test.each<[string, [string, string, string]]>([
  ["- - -", ["nothing", "nothing", "nothing"]],
  ["- - 1", ["note", "note", "note"]],
  ["1 1 1", ["nothing", "nothing", "nothing"]],
  ["2 2 1", ["note", "note", "note"]],
  ["1 1 -", ["note", "note", "note"]],
  ["1 - -", ["upload", "leave", "upload"]],
  ["- 1 -", ["leave", "download", "download"]],
  ["2 1 1", ["upload", "leave", "upload"]],
  ["1 2 1", ["leave", "download", "download"]],
  ["2 3 1", ["conflict", "conflict", "conflict"]],
  ["2 3 -", ["conflict", "conflict", "conflict"]],
  ["1 - 1", ["upload", "leave/delete-local", "upload/delete-local"]],
  ["- 1 1", ["leave/delete-remote", "download", "download/delete-remote"]],
  ["2 - 1", ["upload", "conflict", "conflict"]],
  ["- 2 1", ["conflict", "download", "conflict"]],
])("local, remote, base: %s", (sides, expected) => {
  const [local = "-", remote = "-", base = "-"] = sides.split(" ");
  const directions: Direction[] = ["up", "down", "both"];
  for (const [index, direction] of directions.entries()) {
    const [kept = "", deleted = kept] = expected[index]?.split("/") ?? [];
    const question = { local: side(local), remote: side(remote), base: side(base), direction };
    const done = [false, true].map((flag) => decide({ ...question, delete: flag }).do);
    expect([direction, ...done]).toEqual([direction, kept, deleted] as typeof done);
  }
});
