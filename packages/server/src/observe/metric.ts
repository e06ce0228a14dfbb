/** Values of a metric's labels, in the order of its names. */
type Labels = readonly string[];

interface Named {
  /** With its unit last, and `_total` for what only grows. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

/** Enough for every route and every cause that there is. What would be more is counted together, under `other`. */
const MAX_SERIES = 1_000;

/** From a command in a warm sandbox to an image that must be fetched first. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600];

/** What a scrape prints: Prometheus' text format, version 0.0.4. */
export interface Metric {
  readonly name: string;
  print(): string;
}

/** A number for each set of labels: one that only grows, or one that is set at each scrape. */
export class Value implements Metric {
  readonly name: string;
  readonly #options: Named & { readonly type: "counter" | "gauge" };
  readonly #series = new Series<{ value: number }>(() => ({ value: 0 }));

  constructor(options: Named & { readonly type: "counter" | "gauge" }) {
    this.name = options.name;
    this.#options = options;
    // A counter that was never touched is 0, and a rate over it is not "no data".
    if ((options.labels ?? []).length === 0) this.add(0);
  }

  add(amount: number, ...labels: Labels): void {
    this.#series.at(labels).value += amount;
  }

  set(value: number, ...labels: Labels): void {
    this.#series.at(labels).value = value;
  }

  /** Forgets every set of labels: the next values are all there is. */
  clear(): void {
    this.#series.clear();
  }

  print(): string {
    const { name, type, labels } = this.#options;
    const lines = this.#series.all().map(([values, { value }]) => line(name, pairs(labels, values), value));
    return heading(this.#options, type) + lines.join("");
  }
}

/** How long things took. */
export class Histogram implements Metric {
  readonly name: string;
  readonly #options: Named;
  readonly #series = new Series(() => ({
    buckets: new Array<number>(SECONDS.length).fill(0),
    sum: 0,
    count: 0,
  }));

  constructor(options: Named) {
    this.name = options.name;
    this.#options = options;
    if ((options.labels ?? []).length === 0) this.#series.at([]);
  }

  observe(seconds: number, ...labels: Labels): void {
    const one = this.#series.at(labels);
    const first = SECONDS.findIndex((bound) => seconds <= bound);
    if (first >= 0) one.buckets[first] = (one.buckets[first] ?? 0) + 1;
    one.sum += seconds;
    one.count++;
  }

  print(): string {
    const { name, labels } = this.#options;
    const lines = this.#series.all().flatMap(([values, { buckets, sum, count }]) => {
      const own = pairs(labels, values);
      let below = 0;
      const bounded = SECONDS.map((bound, i) => {
        below += buckets[i] ?? 0;
        return line(`${name}_bucket`, [...own, `le="${bound}"`], below);
      });
      return [
        ...bounded,
        line(`${name}_bucket`, [...own, 'le="+Inf"'], count),
        line(`${name}_sum`, own, sum),
        line(`${name}_count`, own, count),
      ];
    });
    return heading(this.#options, "histogram") + lines.join("");
  }
}

/** What is kept for each set of labels, of which there are never more than a few. */
class Series<T> {
  readonly #all = new Map<string, [labels: Labels, one: T]>();
  readonly #make: () => T;

  constructor(make: () => T) {
    this.#make = make;
  }

  at(labels: Labels): T {
    const key = labels.join("\n");
    const known = this.#all.get(key);
    if (known !== undefined) return known[1];
    if (this.#all.size >= MAX_SERIES && labels.some((label) => label !== OTHER))
      return this.at(labels.map(() => OTHER));
    const made = this.#make();
    this.#all.set(key, [labels, made]);
    return made;
  }

  all(): [labels: Labels, one: T][] {
    return [...this.#all.values()];
  }

  clear(): void {
    this.#all.clear();
  }
}

const OTHER = "other";

function heading({ name, help }: Named, type: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

function pairs(names: readonly string[] = [], values: Labels): string[] {
  return names.map((name, i) => `${name}="${escaped(values[i] ?? "")}"`);
}

function line(name: string, labels: readonly string[], value: number): string {
  return `${name}${labels.length === 0 ? "" : `{${labels.join(",")}}`} ${value}\n`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
