export { type Keeper, startKeeper } from "./keeper.ts";
