import { FakeProvider } from "./fake-provider.ts";
import { providerConformance } from "./provider-conformance.ts";

providerConformance("fake", {
  timeoutMs: 5_000,
  setUp: async () => {
    const provider = new FakeProvider();
    return {
      // The object is the backend: what a restarted server finds is what the old one left.
      open: () => provider,
      plan: { spec: {}, hostname: "box", secret: "not-a-secret-but-long-enough-for-one" },
      crash: async (ref) => provider.kill(ref),
      leftovers: async () => provider.leftovers(),
      close: async () => provider.close(),
    };
  },
});
