declare module "*.bash" {
  const text: string;
  export default text;
}
declare module "*.sh" {
  const text: string;
  export default text;
}
