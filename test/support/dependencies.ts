import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Every package that one needs to run, itself included, as "name version (license)": found the way
 * that Node.js finds them, without a lockfile.
 */
export function findDependencies(folder: string, found = new Set<string>()): Set<string> {
  const { name, version, license, dependencies, optionalDependencies } = readManifest(folder)
  const title = `${name} ${version} (${license})`
  if (found.has(title)) return found
  found.add(title)
  for (const needed of Object.keys({ ...dependencies, ...optionalDependencies })) {
    let place = folder
    while (!existsSync(join(place, 'node_modules', needed))) place = join(place, '..')
    findDependencies(join(place, 'node_modules', needed), found)
  }
  return found
}

function readManifest(folder: string) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

/** The titles in a file of licences, each followed by a text. */
export function findTitles(licenses: string): string[] {
  const parts = [...licenses.matchAll(/^={80}\n(.+)\n={80}\n\n([\s\S]*?)(?=^={80}$|$(?![\s\S]))/gm)]
  return parts.filter(([, , text = '']) => text.trim().length > 200).map(([, title = '']) => title)
}
