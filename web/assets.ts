import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { findPackageJSON, stripTypeScriptTypes } from 'node:module'
import { extname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { buildOpenApi } from '../src/contract/openapi.ts'
import { isExecutable, listEmbedded, readEmbedded } from '../src/embedded.ts'
import { joinModules } from './join.ts'

/** A file that browsers ask for. */
export interface Asset {
  /** Its path without the leading slash. A file with a hash in its name never changes. */
  readonly name: string
  readonly contentType: string
  readonly bytes: Buffer
  readonly gzipped: Buffer
  /** The hash of its content. */
  readonly hash: string
}

const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  // The document of the reference: the contract calls these files text.
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
}

/** Where the executable keeps these files. */
export const embeddedFolder = 'web/'

/** Every file of the pages: embedded in the executable, or built. */
export function loadAssets(): ReadonlyMap<string, Asset> {
  if (!isExecutable) return buildAssets()
  const names = listEmbedded().filter((name) => name.startsWith(embeddedFolder))
  return toMap(names.map((name) => toAsset(name.slice(embeddedFolder.length), readEmbedded(name))))
}

function toMap(assets: readonly Asset[]): ReadonlyMap<string, Asset> {
  return new Map(assets.map((asset) => [asset.name, asset]))
}

/** Builds every file of the pages. */
export function buildAssets(): ReadonlyMap<string, Asset> {
  const files: [name: string, text: string][] = [
    ['style.css', readFile('style.css')],
    ['reference.css', readFile('reference.css')],
    ['icon.svg', readFile('icon.svg')],
    ['page.js', joinBrowserModules('page')],
    ['reference.js', joinBrowserModules('reference')],
    ['openapi.txt', JSON.stringify(buildOpenApi({ baseUrl: '.' }))],
  ]
  const linked = files.map(([name, text]) => {
    const extension = extname(name)
    const hashed = name.replace(extension, `-${toHash(text)}${extension}`)
    return { name, asset: toAsset(`assets/${hashed}`, text) }
  })
  const pages = ['page.html', 'reference.html'].map((page) => {
    const text = linked.reduce(
      (html, { name, asset }) => html.replaceAll(`assets/${name}`, asset.name),
      readFile(page).replace('<slot name="program"></slot>', readVersion()),
    )
    return toAsset(page, text)
  })
  return toMap([...linked.map(({ asset }) => asset), ...pages])
}

/** A file with its compressed form and the hash of its content. */
export function toAsset(name: string, text: string): Asset {
  const bytes = Buffer.from(text)
  return {
    name,
    contentType: contentTypes[extname(name)] ?? 'application/octet-stream',
    bytes,
    gzipped: gzipSync(bytes, { level: 9 }),
    hash: toHash(text),
  }
}

function toHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}

/** The version of the program: the pages know only that of the interface. */
function readVersion(): string {
  const path = findPackageJSON(import.meta.url) ?? ''
  return JSON.parse(readFileSync(path, 'utf8')).version
}

function readFile(name: string): string {
  return readFileSync(new URL(`files/${name}`, import.meta.url), 'utf8')
}

/** A checkout has the source of these modules; a release has them compiled. */
function joinBrowserModules(name: string): string {
  const extension = extname(import.meta.url)
  const entry = new URL(`browser/${name}/${name}${extension}`, import.meta.url)
  return joinModules(entry, (url) => {
    const text = readFileSync(url, 'utf8')
    return extension === '.ts' ? stripTypes(text) : text
  })
}

/** Strips types, as Node does on import, but without the warning that Node prints for this way. */
function stripTypes(text: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(text)
  } finally {
    process.emitWarning = emitWarning
  }
}
