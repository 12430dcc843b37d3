import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The file with all licences, in the package, in the image and beside the executable. */
export const licensesName = 'THIRD-PARTY-LICENSES.txt'

/** A part of the program, and the text of its licence. */
interface Licensed {
  readonly title: string
  readonly text: string
}

export function writeLicenses(parts: readonly Licensed[]): string {
  const line = '='.repeat(80)
  return parts.map(({ title, text }) => `${line}\n${title}\n${line}\n\n${text.trim()}\n`).join('\n')
}

/** The licences of a checkout and of the packages that it needs to run. */
export function collectLicenses(checkout: string): Licensed[] {
  const { packages } = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; link?: true; os?: string[] }>
  }
  // Node.js itself has one package for each system, and a licence of its own.
  const folders = Object.entries(packages)
    .filter(([path, { dev, link, os }]) => /^(node_modules|$)/.test(path) && !(dev || link || os))
    .map(([path]) => join(checkout, path))
  return folders.map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    )
    const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.md|\.txt)?$/i.test(entry))
    const text = file === undefined ? readSection(folder) : readFileSync(join(folder, file), 'utf8')
    return { title: `${name} ${version} (${license})`, text }
  })
}

/** The licence of the running Node.js, if it is where archives and packages have it. */
export function findNodeLicense(): Licensed[] {
  const folder = dirname(realpathSync(process.execPath))
  const path = [folder, dirname(folder)]
    .map((place) => join(place, 'LICENSE'))
    .find(
      (file) => existsSync(file) && readFileSync(file, 'utf8').startsWith('Node.js is licensed'),
    )
  return path === undefined ? [] : [toNodeLicense(readFileSync(path, 'utf8'))]
}

/** Node.js contains the other three, and its text has the licences of all. */
export function toNodeLicense(text: string): Licensed {
  const { node, v8, openssl, sqlite } = process.versions
  return { title: `Node.js ${node}, with V8 ${v8}, OpenSSL ${openssl} and SQLite ${sqlite}`, text }
}

/** The licence of a package that has it at the end of its README. */
function readSection(folder: string): string {
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  const [, text] = /^#+ licen[cs]e$\n([^#]+)$/im.exec(readme) ?? []
  if (text !== undefined) return text
  throw new Error(`The package in ${folder} has no licence text.`)
}
