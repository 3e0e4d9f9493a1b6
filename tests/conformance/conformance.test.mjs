// The public suite against the real binary, nothing of it left out. ARBE_ROUNDS says how often, in one data directory:
// "fresh" starts a server on an empty one, "again" goes on with the server as it runs, "restarted" drains it and starts
// it anew. What a round leaves behind, such as subscriptions whose receivers are gone, must not disturb the next.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { makeDir, removeDir, startServer } from "./server.mjs"

// The suite waits this long for a long-poll to time out, so the server is told to be quicker than its 30 s default.
const LONG_POLL_MS = 5_000
// The suite's webhook receivers listen on loopback.
const FLAGS = ["--long-poll-timeout", `${LONG_POLL_MS / 1000}s`, "--webhooks-allow-loopback"]
const ROUNDS = (process.env.ARBE_ROUNDS ?? "fresh").split(",")
process.env.ARBE_FLAGS = `${FLAGS.join(" ")} ${process.env.ARBE_FLAGS ?? ""}`

let dir
let server

async function stop() {
  const running = server
  server = undefined
  const how = await running.stop()
  expect(how, running.output()).toEqual({ code: 0, signal: null })
}

beforeAll(async () => {
  dir = await makeDir()
})

ROUNDS.forEach((how, round) => {
  describe(`Round ${round + 1}, ${how}`, () => {
    // The suite reads baseUrl at each test, so it may be filled in once the port is known.
    const options = { baseUrl: "", longPollTimeoutMs: LONG_POLL_MS, subscriptions: true }

    beforeAll(async () => {
      if (how === "restarted") {
        await stop()
      }
      server ??= await startServer(dir)
      options.baseUrl = server.url
    })

    runConformanceTests(options)
  })
})

describe("The server after the suite", () => {
  test("drains at SIGTERM and exits with 0", stop)
})

afterAll(async () => {
  await server?.stop()
  await removeDir(dir)
})
