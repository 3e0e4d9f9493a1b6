// The public suite against the real binary. Subscriptions (sections 6 and 7 of the protocol) are not built, so the
// suite's own option leaves their block out; nothing else is left out.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { startServer } from "./server.mjs"

// The suite waits this long for a long-poll to time out, so the server is told to be quicker than its 30 s default.
const LONG_POLL_MS = 5_000
process.env.ARBE_FLAGS = `--long-poll-timeout ${LONG_POLL_MS / 1000}s ${process.env.ARBE_FLAGS ?? ""}`

// The suite reads baseUrl at each test, so it may be filled in once the port is known.
const options = { baseUrl: "", longPollTimeoutMs: LONG_POLL_MS, subscriptions: false }
let server

beforeAll(async () => {
  server = await startServer()
  options.baseUrl = server.url
})

runConformanceTests(options)

describe("The server after the suite", () => {
  test("drains at SIGTERM and exits with 0", async () => {
    const running = server
    server = undefined
    const how = await running.stop()
    expect(how, running.output()).toEqual({ code: 0, signal: null })
  })
})

afterAll(async () => {
  await server?.stop()
})
