/**
 * Checks of JSON without zod, for what every keeper reads: zod is 0.9 MiB of one, which an idle one need not have. They
 * say what is wrong in zod's words, and a `Shape` is asked as a schema is, so that a caller need not know which it has.
 */

export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What can be asked of a zod schema, too. */
export interface Checker<T> {
  safeParse(
    value: unknown,
  ):
    | { readonly success: true; readonly data: T }
    | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } };
}

export interface Shape<T> extends Checker<T> {
  /** Throws an error that names every issue. */
  parse(value: unknown): T;
}

export function shape<T>(check: Check<T>): Shape<T> {
  const safeParse: Shape<T>["safeParse"] = (value) => {
    const issues: Issue[] = [];
    const data = check(value, { path: [], issues });
    return issues.length === 0 ? { success: true, data } : { success: false, error: { issues } };
  };
  const parse = (value: unknown): T => {
    const result = safeParse(value);
    if (result.success) return result.data;
    throw new Error(tellIssues(result.error.issues));
  };
  return { safeParse, parse };
}

/** For people, in one line. */
export function tellIssues(issues: readonly Issue[]): string {
  return issues
    .map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`))
    .join("; ");
}

/** The value as it is to be used. What is wrong is added to the issues; then the returned value means nothing. */
export type Check<T> = (value: unknown, at: Place) => T;

interface Place {
  readonly path: readonly PropertyKey[];
  readonly issues: Issue[];
}

export const text: Check<string> = (value, at) =>
  typeof value === "string" ? value : unexpected("string", value, at);

export const flag: Check<boolean> = (value, at) =>
  typeof value === "boolean" ? value : unexpected("boolean", value, at);

export const number: Check<number> = (value, at) =>
  Number.isFinite(value) ? (value as number) : unexpected("number", value, at);

export const integer: Check<number> = (value, at) =>
  Number.isSafeInteger(value) ? (value as number) : unexpected("int", value, at);

export const anything: Check<unknown> = (value) => value;

export function oneOf<const T extends string>(values: readonly T[]): Check<T> {
  const message = `Invalid option: expected one of ${values.map((value) => `"${value}"`).join("|")}`;
  return (value, at) => values.find((one) => one === value) ?? wrong(message, at);
}

/** Another rule for what is of the right kind. */
export function which<T>(check: Check<T>, isRight: (value: T) => boolean, message: string): Check<T> {
  return (value, at) => {
    const before = at.issues.length;
    const checked = check(value, at);
    return at.issues.length > before || isRight(checked) ? checked : wrong(message, at);
  };
}

export function atLeast(least: number, check: Check<number>): Check<number> {
  return which(check, (value) => value >= least, `Too small: expected number to be >=${least}`);
}

export function positive(check: Check<number>): Check<number> {
  return which(check, (value) => value > 0, "Too small: expected number to be >0");
}

export function optional<T>(check: Check<T>): Check<T | undefined> {
  return (value, at) => (value === undefined ? undefined : check(value, at));
}

export function nullable<T>(check: Check<T>): Check<T | null> {
  return (value, at) => (value === null ? null : check(value, at));
}

export function withDefault<T>(check: Check<T>, value: T): Check<T> {
  return (given, at) => (given === undefined ? value : check(given, at));
}

export function listOf<T>(check: Check<T>): Check<T[]> {
  return (value, at) =>
    Array.isArray(value)
      ? value.map((item, index) => check(item, inside(at, index)))
      : unexpected("array", value, at);
}

export function recordOf<T>(check: Check<T>): Check<Record<string, T>> {
  return (value, at) => {
    if (!isObject(value)) return unexpected("record", value, at);
    // That name would change what the object is.
    const entries = Object.entries(value).filter(([name]) => name !== "__proto__");
    return Object.fromEntries(entries.map(([name, item]) => [name, check(item, inside(at, name))]));
  };
}

type Fields = Record<string, Check<unknown>>;
type Checked<F extends Fields> = { -readonly [Name in keyof F]: ReturnType<F[Name]> };

/** What is not named is left out, so that another version may say more. */
export function object<F extends Fields>(fields: F): Check<Checked<F>> {
  return (value, at) => {
    if (!isObject(value)) return unexpected("object", value, at);
    const checked = Object.entries(fields).map(([name, check]) => [
      name,
      check(value[name], inside(at, name)),
    ]);
    return Object.fromEntries(checked.filter(([, item]) => item !== undefined)) as Checked<F>;
  };
}

/** What is not named is refused. */
export function strictObject<F extends Fields>(fields: F): Check<Checked<F>> {
  const check = object(fields);
  return (value, at) => {
    const checked = check(value, at);
    const unknown = Object.keys(isObject(value) ? value : {}).filter((name) => !Object.hasOwn(fields, name));
    if (unknown.length === 0) return checked;
    const names = unknown.map((name) => `"${name}"`).join(", ");
    return wrong(`Unrecognized key${unknown.length > 1 ? "s" : ""}: ${names}`, at);
  };
}

/** One of several objects, told apart by what they have under one name. */
export function byTag<C extends Record<string, Check<unknown>>>(
  tag: string,
  checks: C,
): Check<ReturnType<C[keyof C]>> {
  return (value, at) => {
    const found = isObject(value) ? value[tag] : undefined;
    const check = typeof found === "string" && Object.hasOwn(checks, found) ? checks[found] : undefined;
    return check === undefined
      ? wrong("Invalid input", inside(at, tag))
      : (check(value, at) as ReturnType<C[keyof C]>);
  };
}

function inside({ path, issues }: Place, name: PropertyKey): Place {
  return { path: [...path, name], issues };
}

function unexpected(wanted: string, value: unknown, at: Place): never {
  return wrong(`Invalid input: expected ${wanted}, received ${kindOf(value)}`, at);
}

/** Goes on after it, so that all that is wrong is found. */
function wrong(message: string, { path, issues }: Place): never {
  issues.push({ path, message });
  return undefined as never;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
