/**
 * Bash 5.2 writes beyond its memory when a text ends inside `$(`, and dies of it at some later command. A shell that was
 * given such a text is made anew at once. Counting is enough: a false alarm costs a few milliseconds.
 */
export function mayDamageBash(text: string): boolean {
  return text.includes("$(") && text.split("(").length > text.split(")").length;
}
