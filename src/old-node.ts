import { createRequire } from 'node:module'

const { engines } = createRequire(import.meta.url)('plant-store/package.json')
const oldest: string = engines.node.replace('>=', '')
const running = process.versions.node

// The command has a check of its own, in `bin`.
if (running.localeCompare(oldest, 'en', { numeric: true }) < 0) {
  throw new Error(
    `plant-store/testing needs Node.js ${oldest} or newer, but this is ${running}. Install a newer one.`,
  )
}
