// The page at /docs. Plain JavaScript, because a browser reads it as it is.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  docExpansion: "list",
  filter: true,
  // The schemas are shown where they are used; a second list of all of them is long.
  defaultModelsExpandDepth: -1,
  tryItOutEnabled: true,
  // The token lives in this page alone, and is gone with it.
  persistAuthorization: false,
  validatorUrl: null,
});
