export type Direction = "up" | "down" | "both";

/** A file on one side: what it holds. Equal ids are equal files. */
interface Side {
  /** Of the content, and of whether it may be executed; of a link, where it leads. */
  readonly id: string;
}

export type Step =
  | { do: "nothing" }
  /** Both sides are the same, which is news to our books. */
  | { do: "note" }
  | { do: "upload" | "download" | "delete-remote" | "delete-local" }
  | { do: "conflict"; reason: string }
  /** There is something to do, but not in the direction or with the leave that was given. */
  | { do: "leave"; reason: string };

export interface Question {
  readonly local: Side | undefined;
  readonly remote: Side | undefined;
  /** As it was on both sides when it was last synced. */
  readonly base: Side | undefined;
  readonly direction: Direction;
  /** Whether a deletion on one side is one on the other. */
  readonly delete: boolean;
}

/**
 * What to do with one file. Nothing that changed since the last sync is ever overwritten or deleted; where both sides
 * did, it is a conflict, and a person decides.
 */
export function decide(question: Question): Step {
  const { local, remote, base } = question;
  if (local === undefined && remote === undefined) return { do: base === undefined ? "nothing" : "note" };
  if (local?.id === remote?.id) return { do: base?.id === local?.id ? "nothing" : "note" };
  if (local === undefined || remote === undefined) return decideMissing(question);
  if (base === undefined) return { do: "conflict", reason: "it is there on both sides, and differs" };
  if (local.id === base.id) return toLocal(question, "download", "it was changed in the sandbox only");
  if (remote.id === base.id) return toRemote(question, "upload", "it was changed here only");
  return { do: "conflict", reason: "it was changed on both sides" };
}

/** It is on one side only: it is new there, or was deleted on the other. */
function decideMissing(question: Question): Step {
  const { local, base } = question;
  const there = local ?? question.remote;
  const isNew = base === undefined;
  const isChanged = base !== undefined && there?.id !== base.id;
  const isHere = local !== undefined;
  if (isNew)
    return isHere
      ? toRemote(question, "upload", "it is new here")
      : toLocal(question, "download", "it is new in the sandbox");
  // The direction says which side is the model.
  const wasDeletedByModel = question.direction === "both" || (question.direction === "up") === !isHere;
  if (!wasDeletedByModel) return isHere ? { do: "upload" } : { do: "download" };
  if (isChanged)
    return {
      do: "conflict",
      reason: `it was deleted ${isHere ? "in the sandbox" : "here"}, and changed ${isHere ? "here" : "in the sandbox"}`,
    };
  if (question.delete) return { do: isHere ? "delete-local" : "delete-remote" };
  // In both directions there is no model: it comes back.
  if (question.direction === "both") return { do: isHere ? "upload" : "download" };
  return {
    do: "leave",
    reason: `it was deleted ${isHere ? "in the sandbox" : "here"}; deletions are not synced`,
  };
}

function toRemote({ direction }: Question, step: "upload", reason: string): Step {
  return direction === "down" ? { do: "leave", reason } : { do: step };
}

function toLocal({ direction }: Question, step: "download", reason: string): Step {
  return direction === "up" ? { do: "leave", reason } : { do: step };
}
