import type { z } from "zod";

/** What is wrong with a field, for whoever sent it; `undefined` leaves it to the schema's library. */
export function issueInWords(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "too_small":
      return issue.origin === "number" ? `must be at least ${issue.minimum}` : tooShort(issue);
    case "too_big":
      return issue.origin === "number" ? `must be at most ${issue.maximum}` : tooLong(issue);
    case "invalid_type":
      return wrongType(issue);
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "unrecognized_keys":
      return `there is no field ${issue.keys.map((key) => `"${key}"`).join(", ")} here`;
    default:
      return undefined;
  }
}

function wrongType({ expected, input }: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string {
  if (input === undefined) return "is missing";
  const noun = nouns[expected as keyof typeof nouns];
  return `must be ${noun ?? `a value of type ${expected}`}`;
}

const nouns = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  object: "an object",
  record: "an object",
  array: "a list",
} as const;

function tooShort({ origin, minimum }: z.core.$ZodRawIssue<z.core.$ZodIssueTooSmall>): string {
  return origin === "string" && minimum === 1 ? "must not be empty" : `must have at least ${minimum} of them`;
}

function tooLong({ origin, maximum }: z.core.$ZodRawIssue<z.core.$ZodIssueTooBig>): string {
  return `must have at most ${maximum} ${origin === "string" ? "characters" : "of them"}`;
}
