import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isExecutable, readEmbedded } from '../embedded.ts'
import type { Terminal } from './terminal.ts'

/** What the texts are called inside of the executable, and in the published package. */
export const licensesName = 'licenses.txt'

/** A part of the program, and the text under which it may be passed on. */
export interface Licensed {
  readonly title: string
  readonly text: string
}

/** Prints the licence of the program and of everything that comes with it. */
export async function printLicenses(terminal: Terminal): Promise<void> {
  await terminal.print(readLicenses())
}

function readLicenses(): string {
  if (isExecutable) return readEmbedded(licensesName)
  const packaged = new URL(`../${licensesName}`, import.meta.url)
  if (existsSync(packaged)) return readFileSync(packaged, 'utf8')
  const checkout = fileURLToPath(new URL('../..', import.meta.url))
  return writeLicenses([...collectLicenses(checkout), ...findNodeLicense()])
}

export function writeLicenses(parts: readonly Licensed[]): string {
  const line = '='.repeat(80)
  return parts.map(({ title, text }) => `${line}\n${title}\n${line}\n\n${text.trim()}\n`).join('\n')
}

/** The licences of a checkout: its own, and those of the packages that it needs to run. */
export function collectLicenses(checkout: string): Licensed[] {
  const { packages } = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; optional?: true; link?: true }>
  }
  // Optional is only Node.js itself, which has one package for each platform.
  const folders = Object.entries(packages)
    .filter(
      ([path, { dev, optional, link }]) =>
        /^(node_modules|$)/.test(path) && !(dev || optional || link),
    )
    .map(([path]) => join(checkout, path))
  return folders.map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    )
    const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.md|\.txt)?$/i.test(entry))
    const text =
      file === undefined ? textOf(license, name) : readFileSync(join(folder, file), 'utf8')
    return { title: `${name} ${version} (${license})`, text }
  })
}

/** The licence of the Node.js that runs, if it lies where its archives and packages have it. */
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

/** The text of a licence that a package names without bringing it. */
function textOf(license: string, name: string): string {
  if (license === 'Unlicense') return unlicense
  throw new Error(`The package ${name} has no licence text: add the text of ${license}.`)
}

const unlicense = `This is free and unencumbered software released into the public domain.

Anyone is free to copy, modify, publish, use, compile, sell, or
distribute this software, either in source code form or as a compiled
binary, for any purpose, commercial or non-commercial, and by any
means.

In jurisdictions that recognize copyright laws, the author or authors
of this software dedicate any and all copyright interest in the
software to the public domain. We make this dedication for the benefit
of the public at large and to the detriment of our heirs and
successors. We intend this dedication to be an overt act of
relinquishment in perpetuity of all present and future rights to this
software under copyright law.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR
OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR
OTHER DEALINGS IN THE SOFTWARE.

For more information, please refer to <https://unlicense.org>
`
