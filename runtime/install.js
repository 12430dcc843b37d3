// `npm start` and `npm test` run this first: it installs what package-lock.json names, unless it is
// there. It runs on the Node.js of the machine, so it is not TypeScript and needs no package.
import { closeSync, existsSync, openSync, rmSync, statSync, utimes } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findNeeded } from './needed.js'

const folder = fileURLToPath(new URL('..', import.meta.url))
const modules = join(folder, 'node_modules')
const wanted = process.argv[2]

/** Exists while an installation runs, which touches it every second; a kill leaves it behind. */
const lock = join(folder, '.installing')
const abandonedAfterMs = 10_000
const longestWaitMs = 600_000

if (existsSync(lock) || findNeeded(folder, wanted) !== undefined) {
  process.exitCode = await installOnce().catch(({ message }) =>
    refuse(`Packages are missing, and npm cannot install them here: ${message}`),
  )
}

/** Installs, or waits for another command that does. Returns the exit code. */
async function installOnce() {
  const waitUntil = Date.now() + longestWaitMs
  let isWaiting = false
  while (!takeLock()) {
    const { mtimeMs } = statSync(lock, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() }
    if (mtimeMs + abandonedAfterMs < Date.now()) {
      forgetInstallation()
      rmSync(lock, { force: true })
      continue
    }
    if (!isWaiting) console.error('Another command is installing packages here: waiting for it.')
    isWaiting = true
    if (waitUntil < Date.now()) return refuse('It is still installing. Stop it, and try again.')
    await setTimeout(200)
  }
  try {
    const flags = findNeeded(folder, wanted)
    return flags === undefined ? 0 : await install(flags)
  } finally {
    rmSync(lock, { force: true })
  }
}

function takeLock() {
  try {
    closeSync(openSync(lock, 'wx'))
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

async function install(flags) {
  if (process.platform === 'win32' && process.execPath.startsWith(modules)) {
    return refuse('Packages are outdated, and Windows cannot replace a running one: run "npm ci".')
  }
  console.error(`Installing what package-lock.json names: npm ci ${flags.join(' ')}`)
  // The Node.js that runs npm stays; the one in the checkout is about to be deleted.
  const { npm_execpath: script = '', npm_node_execpath: node } = process.env
  const [program, ...first] = script.endsWith('npm-cli.js') ? [node, script] : ['npm']
  // Without a network, npm would try for more than a minute.
  const calm = ['--loglevel=error', '--fetch-retry-mintimeout=1000']
  const args = [...first, 'ci', ...flags, ...calm]
  // Loading it takes longer than the check above, which every start waits for.
  const { spawn } = await import('node:child_process')
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 2, 2] })
  const touching = setInterval(() => utimes(lock, new Date(), new Date(), () => {}), 1000)
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) {
    process.on(signal, () => child.kill(signal))
  }
  const exitCode = await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]))
  }).finally(() => clearInterval(touching))
  if (exitCode === 0) return 0
  forgetInstallation()
  return refuse(`npm ci has failed (${exitCode}): the packages are not installed.`, exitCode)
}

/** Makes the next command install everything again. */
function forgetInstallation() {
  rmSync(join(modules, '.package-lock.json'), { force: true })
  rmSync(join(modules, '.installed'), { force: true })
}

function refuse(reason, exitCode = 1) {
  console.error(reason)
  return exitCode
}
