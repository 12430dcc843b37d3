/** Ways to start the programs that the benchmark compares. */
import { fileURLToPath } from 'node:url'
import type { Lab, Server } from './lab.ts'
import { token } from './requests.ts'

/** Options of Node.js and environment variables for a process. */
export interface ProcessOptions {
  readonly nodeOptions?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const plantStore = toPath('../bin/plant-store.js')
/** The options of `npm start`. */
const usualOptions = ['--disable-sigusr1', '--max-semi-space-size=16']

/** The absolute path of a file, given relative to bench/. */
export function toPath(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}

/** Starts Plant Store as users do. */
export function servePlantStore(
  lab: Lab,
  url: string,
  { nodeOptions = [], env = {} }: ProcessOptions = {},
): Promise<Server> {
  const args = [...usualOptions, ...nodeOptions, plantStore, 'serve']
  return lab.serve({ args, env: { ...env, ...toSettings(url) } })
}

/** Starts the baseline on the engine that the URL names. */
export function serveBaseline(
  lab: Lab,
  url: string,
  { env = {} }: ProcessOptions = {},
): Promise<Server> {
  const engine = url.startsWith('sqlite:') ? 'sqlite' : 'postgres'
  const program = toPath(`systems/baseline-${engine}.js`)
  return lab.serve({ args: [program, url.replace(/^sqlite:/, '')], env })
}

function toSettings(url: string): Record<string, string> {
  return { DATABASE_URL: url, PLANT_STORE_TOKEN: token }
}
