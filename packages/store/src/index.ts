export { SqliteStore } from "./sqlite/sqlite-store.ts";
