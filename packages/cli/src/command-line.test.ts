import { expect, test } from "bun:test";
import { commandText, toCommand } from "./command-line.ts";

test("one argument is a line for the shell, several are an argument list", () => {
  expect(toCommand(["cd app && make"])).toBe("cd app && make");
  expect(toCommand(["ls", "-la"])).toEqual(["ls", "-la"]);
});

test("an argument list can be read, and pasted, as a shell line", () => {
  expect(commandText(["printf", "%s", "a b", "it's", "", "$HOME"])).toBe(
    `printf %s 'a b' 'it'\\''s' '' '$HOME'`,
  );
});
