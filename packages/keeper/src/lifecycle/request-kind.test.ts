import { expect, test } from "bun:test";
import { kindOf, type RequestKind } from "./request-kind.ts";

test.each<[string, string, RequestKind]>([
  ["GET", "/v1/keeper", "own"],
  ["POST", "/v1/admit", "own"],
  ["POST", "/v1/quiesce", "own"],
  ["GET", "/v1/ports", "look"],
  ["GET", "/v1/ports/:port/connect", "own"],
  ["GET", "/v1/processes/:id/logs", "look"],
  ["GET", "/v1/processes/:id/wait", "look"],
  ["GET", "/v1/terminals/:id/connect?readonly=true", "look"],
  ["GET", "/v1/terminals/:id/connect?readonly=false", "work"],
  ["GET", "/v1/terminals/:id/connect", "work"],
  ["POST", "/v1/exec", "work"],
  ["POST", "/v1/processes/:id/stdin", "work"],
  ["POST", "/v1/processes/:id/kill", "end"],
  ["POST", "/v1/commands/:id/cancel", "end"],
  ["DELETE", "/v1/sessions/:id", "end"],
  ["GET", "/v1/files", "work"],
  ["DELETE", "/v1/files", "work"],
  ["PUT", "/v1/what-is-not-there-yet", "work"],
])("%s %s is %s", (method, path, kind) => {
  expect(kindOf(path.split("?")[0] ?? "", { method, url: `http://keeper${path}` })).toBe(kind);
});
