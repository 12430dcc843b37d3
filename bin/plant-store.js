#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

// Without a listener, Node opens its debugger on this signal. `npm start` switches that off
// earlier.
process.on('SIGUSR1', () => {})

const { version, engines } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)
const oldest = engines.node.replace('>=', '')
if (process.versions.node.localeCompare(oldest, 'en', { numeric: true }) < 0) {
  console.error(
    `plant-store needs Node.js ${oldest} or newer, but this is ${process.versions.node}. Install a newer one. A checkout brings its own: run "npm start", or "npm ci" and then "npx plant-store".`,
  )
  process.exit(78)
}

// Saves a third of the start-up time, from the second start on. The cache lies next to the program
// because others could plant code in the shared temporary folder. A read-only program has no cache.
module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url)))

// A checkout runs its source; the published package has only the compiled files.
const source = new URL('../src/main.ts', import.meta.url)
const { main } = await import(
  existsSync(source) ? source : new URL('../dist/src/main.js', import.meta.url)
)
await main({ version, command: 'npx plant-store' })
