import { expect, test } from "bun:test";
import { DOCKER_HUB, parseImageName } from "./image-name.ts";

test.each([
  ["debian", ["debian", "latest", DOCKER_HUB]],
  ["debian:bookworm", ["debian", "bookworm", DOCKER_HUB]],
  ["docker.io/library/debian:12", ["docker.io/library/debian", "12", DOCKER_HUB]],
  ["team/tools", ["team/tools", "latest", DOCKER_HUB]],
  ["localhost/tools", ["localhost/tools", "latest", "localhost"]],
  [
    "registry.example:5000/team/tools",
    ["registry.example:5000/team/tools", "latest", "registry.example:5000"],
  ],
  ["localhost:5000/tools:1", ["localhost:5000/tools", "1", "localhost:5000"]],
  ["ghcr.io/a/b:2@sha256:0a", ["ghcr.io/a/b", "sha256:0a", "ghcr.io"]],
])("%s", (name, [repository, version, registry]) => {
  expect(parseImageName(name)).toEqual({ repository, version, registry } as ReturnType<
    typeof parseImageName
  >);
});
