#!/usr/bin/env node
// The Node reference server behind arbe's own flags, file-backed: ARBE_BIN=tests/conformance/reference.mjs shows what
// it answers where the suite or a test of ours and the server disagree.
import { DurableStreamTestServer } from "@durable-streams/server"
import { mkdirSync } from "node:fs"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  strict: false,
  options: {
    listen: { type: "string", default: "127.0.0.1:0" },
    data: { type: "string" },
    "long-poll-timeout": { type: "string", default: "30s" },
  },
})
const [host, port] = values.listen.split(":")
if (values.data) {
  mkdirSync(values.data, { recursive: true, mode: 0o700 })
}
const server = new DurableStreamTestServer({
  host,
  port: Number(port),
  dataDir: values.data,
  webhooks: true,
  longPollTimeout: Number.parseFloat(values["long-poll-timeout"]) * 1000,
})
console.log(`listening on ${await server.start()}`)
process.on("SIGTERM", async () => {
  await server.stop()
  process.exit(0)
})
