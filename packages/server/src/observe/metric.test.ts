import { expect, test } from "bun:test";
import { Histogram, Value } from "./metric.ts";

test("a counter prints its labels escaped, and one without labels from the beginning", () => {
  const plain = new Value({ type: "counter", name: "a_total", help: "All." });
  expect(plain.print()).toBe("# HELP a_total All.\n# TYPE a_total counter\na_total 0\n");
  const labelled = new Value({ type: "gauge", name: "b", help: "B.", labels: ["x", "y"] });
  labelled.add(2, 'say "hi"\n', "back\\slash");
  labelled.set(7, "p", "q");
  expect(labelled.print().split("\n").slice(2)).toEqual([
    'b{x="say \\"hi\\"\\n",y="back\\\\slash"} 2',
    'b{x="p",y="q"} 7',
    "",
  ]);
});

test("a histogram's buckets hold all that is not longer, and its sum and count everything", () => {
  const seconds = new Histogram({ name: "s", help: "S.", labels: ["of"] });
  for (const one of [0.001, 0.3, 0.3, 1e6]) seconds.observe(one, "x");
  const printed = seconds.print();
  const at = (bound: string) => Number(printed.match(`s_bucket{of="x",le="${bound}"} (\\d+)`)?.[1]);
  expect(["0.001", "0.25", "0.5", "600"].map(at)).toEqual([1, 1, 3, 3]);
  expect(printed).toContain('s_bucket{of="x",le="+Inf"} 4\n');
  expect(printed).toContain('s_count{of="x"} 4\n');
  expect(printed).toContain('s_sum{of="x"} 1000000.601\n');
});

test("what has too many labels is counted together, and nothing is lost", () => {
  const value = new Value({ type: "counter", name: "c_total", help: "C.", labels: ["of"] });
  for (let i = 0; i < 5_000; i++) value.add(1, `label ${i}`);
  const lines = value.print().trim().split("\n").slice(2);
  expect(lines.length).toBeLessThanOrEqual(1_001);
  expect(lines).toContain('c_total{of="other"} 4000');
});
