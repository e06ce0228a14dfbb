export { PostgresStore } from "./postgres/postgres-store.ts";
export { SqliteStore } from "./sqlite/sqlite-store.ts";
