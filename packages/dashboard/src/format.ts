const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;

/** In the largest unit, which is all that an age needs: `3 min`, `2 d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** For a countdown: `29:59`, `1:02:03`, `3 d 4 h`. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds >= 86_400)
    return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
  const parts = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, at) => (at === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}

export function bytes(count: number): string {
  const scale = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(scale.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, count)) / 10)));
  const value = count / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${scale[power]}`;
}

/** A moment, in the reader's own time: the hour today, with the day else. */
export function moment(iso: string, now = Date.now()): string {
  const date = new Date(iso);
  const isToday = date.toDateString() === new Date(now).toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
}

/** A sentence of the server, which speaks in UTC, with its moments in the reader's own time. */
export function inOwnTime(sentence: string): string {
  return sentence.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (iso) => moment(iso));
}

/** A command as it would be typed, more or less. */
export function commandLine(command: string | readonly string[]): string {
  return typeof command === "string" ? command : command.join(" ");
}
