import { SqlStore } from "../sql-store.ts";
import { migrate } from "./migrate.ts";
import { PostgresDriver } from "./postgres-driver.ts";

/** The store on a PostgreSQL database that several servers share. The time is the database's. */
export class PostgresStore extends SqlStore {
  /** Brings the schema up to date; refuses a database that a newer version has already moved on. */
  static async open({ url, newId }: { url: string; newId: () => string }): Promise<PostgresStore> {
    const driver = new PostgresDriver(url);
    try {
      await driver.write(migrate);
      const store = new PostgresStore({ driver, newId });
      // Reservations queue for its row, so there is one from the beginning.
      await store.installationId();
      return store;
    } catch (error) {
      await driver.close();
      throw error;
    }
  }
}
