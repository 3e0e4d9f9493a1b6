// Starts and stops the server under test: the program named by ARBE_BIN, on a port of its own choosing, with the extra
// flags of ARBE_FLAGS (separated by spaces) and a data directory of the caller's. Its output is shown if it
// stops badly.
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..")
const START_MS = 20_000
const STOP_MS = 20_000

export async function makeDir() {
  return await mkdtemp(join(tmpdir(), "arbe-conformance-"))
}

export async function removeDir(dir) {
  await rm(dir, { recursive: true, force: true })
}

export async function startServer(dir) {
  const program = resolve(root, process.env.ARBE_BIN ?? "build/arbe")
  const extra = (process.env.ARBE_FLAGS ?? "").split(/\s+/).filter(Boolean)
  const args = ["streams", "--listen", "127.0.0.1:0", "--data", join(dir, "data"), ...extra]
  // The server takes settings from ARBE_ variables; ours are not meant for it.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ARBE_")))
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env })
  let said = ""
  const exited = new Promise((done) => {
    child.on("error", (error) => done({ code: null, signal: null, error }))
    child.on("exit", (code, signal) => done({ code, signal }))
  })
  const url = await new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`no address within ${START_MS} ms; it said: ${said}`)), START_MS)
    const listen = (chunk) => {
      said = (said + chunk).slice(-65536)
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said)
      if (found) {
        clearTimeout(timer)
        done(found[0])
      }
    }
    child.stdout.on("data", listen)
    child.stderr.on("data", listen)
    exited.then((how) => {
      clearTimeout(timer)
      fail(new Error(`${program} ended before it listened (${JSON.stringify(how)}); it said: ${said}`))
    })
  })
  return {
    url,
    output: () => said,
    // Asks it to drain and answers how it ended; after STOP_MS it is killed and the signal tells so.
    async stop() {
      child.kill("SIGTERM")
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS)
      const how = await exited
      clearTimeout(timer)
      return how
    },
  }
}
