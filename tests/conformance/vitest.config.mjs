// One file, one server, tests in order: the suite's own time-outs decide, ours only stop a hang.
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["*.test.mjs"],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 30_000,
    teardownTimeout: 15_000,
    passWithNoTests: false,
  },
})
