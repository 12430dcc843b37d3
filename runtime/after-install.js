// npm runs this after it has changed node_modules, to make up for what npm does with optional
// packages: it drops one that it cannot download or whose checksum is wrong, and reports success;
// and npm 10 removes the command `node` along with the packages of the other platforms.
import {
  copyFileSync,
  existsSync,
  linkSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const folder = Object.keys(packages.runtime.optionalDependencies)
  .map((name) => `node_modules/${name}`)
  .find((path) => packages[path].os === process.platform && packages[path].cpu === process.arch)
const isOmitted = process.env.npm_config_omit?.includes('optional') ?? false

// `npm start` needs `exec`, so that a signal reaches the service and not a shell in front of it. The
// shell of Windows does not know that word, nor do signals exist there. Nor does it know `cmp`.
if (process.platform === 'win32') {
  writeFileSync('node_modules/.bin/exec.cmd', '@%*\r\n')
  writeFileSync('node_modules/.bin/cmp.cmd', '@exit /b 1\r\n')
}

// Platforms without a package run on the Node.js of the machine.
const isNeeded = folder !== undefined && !isOmitted
if (isNeeded && !existsSync(folder)) {
  refuse(folder)
} else {
  if (isNeeded) linkCommand(`${folder}/${packages[folder].bin.node}`)
  // `npm start` compares the lockfile with this copy: a program in JavaScript would delay it.
  copyFileSync('package-lock.json', 'node_modules/.installed')
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
  // Without these, the next `npm start` installs everything again.
  rmSync('node_modules/.package-lock.json', { force: true })
  rmSync('node_modules/.installed', { force: true })
  process.exitCode = 1
}
