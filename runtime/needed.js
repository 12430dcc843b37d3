import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns the flags with which `npm ci` has to run in a checkout, or undefined if all that is wanted
 * is there: the `service`, or `all` packages. Packages for development stay once they are there.
 */
export function findNeeded(folder, wanted) {
  const locked = Object.entries(readPackages(join(folder, 'package-lock.json')))
    // The others are folders of this repository.
    .filter(([, { integrity }]) => integrity !== undefined)
  const installed = readInstalled(folder)
  const isThere = (path) => existsSync(join(folder, path, 'package.json'))

  // An optional package that npm has left out is for another platform, or not wanted.
  const isMissing = ([path, { integrity, optional }]) =>
    path in installed ? installed[path].integrity !== integrity || !isThere(path) : !optional
  const isWanted = ([, { dev }]) => wanted === 'all' || !dev
  if (!locked.filter(isWanted).some(isMissing)) return undefined

  const keepsDev = wanted === 'all' || locked.some(([path, { dev }]) => dev && isThere(path))
  // NODE_ENV=production would leave them out.
  return [keepsDev ? '--include=dev' : '--omit=dev']
}

/** Reads npm's record of an installation, which it writes when all packages are in their place. */
function readInstalled(folder) {
  try {
    return readPackages(join(folder, 'node_modules', '.package-lock.json'))
  } catch {
    return {}
  }
}

function readPackages(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages
}
