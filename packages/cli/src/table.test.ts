import { expect, test } from "bun:test";
import { renderTable } from "./table.ts";

const head = ["NAME", "NOTE"];

test("columns are as wide as their content, wide characters counted", () => {
  const rows = [
    ["日本", "x"],
    ["a", "y"],
  ];
  expect(renderTable({ head, rows, width: 80 })).toBe("NAME  NOTE\n日本  x\na     y\n");
});

test("the last column is cut to the terminal's width", () => {
  expect(renderTable({ head, rows: [["abcd", "0123456789"]], width: 12 })).toBe("NAME  NOTE\nabcd  01234…\n");
});

test("or goes on below itself, where that is asked for", () => {
  const rows = [["abcd", "one two three"]];
  expect(renderTable({ head, rows, width: 14, wraps: true })).toBe(
    "NAME  NOTE\nabcd  one two\n      three\n",
  );
  expect(renderTable({ head, rows, width: 80, wraps: true })).toBe("NAME  NOTE\nabcd  one two three\n");
});

const wide = {
  head: ["NAME", "ID", "STATE", "NOTE"],
  rows: [["a-very-long-name-indeed", "sbx_0123456789", "running", "something to say"]],
  spare: ["ID", "STATE"],
};

test.each([
  [80, ["NAME", "ID", "STATE", "NOTE"], "a-very-long-name-indeed  sbx_0123456789  running  something to say"],
  [60, ["NAME", "ID", "STATE", "NOTE"], "a-very-long-name-indeed  sbx_0123456789  running  something…"],
  [50, ["NAME", "STATE", "NOTE"], "a-very-long-name-indeed  running  something to say"],
  [36, ["NAME", "NOTE"], "a-very-long-name-indeed  something …"],
  [20, ["NAME", "NOTE"], "a-very-long…  somet…"],
])("in %p columns it has %p", (width, names, row) => {
  const [first = "", second] = renderTable({ ...wide, width }).split("\n");
  expect(first.split(/ +/)).toEqual(names);
  expect(second).toBe(row);
  expect(Bun.stringWidth(row)).toBeLessThanOrEqual(width);
});

test("what comes from a sandbox can neither break a row nor steer the terminal", () => {
  expect(renderTable({ head, rows: [["a\nb", "\u001b[2Jx"]], width: 80 })).toBe("NAME  NOTE\na b    [2Jx\n");
});

test("no rows leave the head", () => {
  expect(renderTable({ head, rows: [], width: 80 })).toBe("NAME  NOTE\n");
});
