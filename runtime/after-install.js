// npm runs this after it has changed node_modules, to make up for what npm does with optional
// packages: it drops one that it cannot download or whose checksum is wrong, and reports success;
// and npm 10 removes the command `node` along with the packages of the other platforms.
import { existsSync, linkSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const folder = Object.keys(packages.runtime.optionalDependencies)
  .map((name) => `node_modules/${name}`)
  .find((path) => packages[path].os === process.platform && packages[path].cpu === process.arch)
const isOmitted = process.env.npm_config_omit?.includes('optional') ?? false

// `npm start` needs `exec`, so that a signal reaches the service and not a shell in front of it. The
// shell of Windows does not know that word, nor do signals exist there.
if (process.platform === 'win32') writeFileSync('node_modules/.bin/exec.cmd', '@%*\r\n')

// Platforms without a package run on the Node.js of the machine.
if (folder !== undefined && !isOmitted) {
  if (existsSync(folder)) linkCommand(`${folder}/${packages[folder].bin.node}`)
  else refuse(folder)
}

function linkCommand(program) {
  if (process.platform === 'win32') {
    if (!existsSync('node_modules/.bin/node.cmd')) linkSync(program, 'node_modules/.bin/node.exe')
  } else if (!existsSync('node_modules/.bin/node')) {
    symlinkSync(program.replace('node_modules', '..'), 'node_modules/.bin/node')
  }
}

function refuse(folder) {
  const { version, integrity } = packages[folder]
  const name = folder.replace('node_modules/', '')
  console.error(
    `npm could not install Node.js ${version}: the registry does not answer, or its ${name} has`,
    `not the checksum in package-lock.json, ${integrity}.`,
    `Compare: npm view ${name}@${version} dist.integrity`,
  )
  // Without npm's record, the next `npm start` installs everything again.
  rmSync('node_modules/.package-lock.json', { force: true })
  process.exitCode = 1
}
