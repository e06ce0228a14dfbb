export * from "./store-conformance.ts";
export * from "./fake-provider.ts";
