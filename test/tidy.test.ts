import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, it } from 'node:test'

/** Which room may import from which others. All else is forbidden. */
const imports: Record<string, string[]> = {
  contract: [],
  client: ['contract'],
  json: ['contract'],
  journal: ['contract'],
  metrics: ['contract', 'journal', 'store/receivers.ts', 'store/store.ts'],
  store: ['contract', 'embedded.ts', 'journal', 'json/write.ts', 'metrics/histogram.ts'],
  transfer: ['contract', 'json', 'store/snapshots.ts', 'store/store.ts'],
  tokens: ['contract', 'store/file-errors.ts', 'store/store.ts', 'repeat.ts'],
  webhooks: ['contract', 'journal', 'json/write.ts', 'store/receivers.ts', 'store/store.ts'],
  http: [
    'contract',
    'journal',
    'json',
    'metrics',
    'store/caller.ts',
    'store/failures.ts',
    'store/store.ts',
    'tokens/verify.ts',
    'transfer',
    'web/assets.ts',
  ],
  'config.ts': [
    'contract/wrong-value.ts',
    'http/cors.ts',
    'http/rate-limit.ts',
    'store/locate.ts',
    'store/open.ts',
    'tokens/operator-token.ts',
  ],
  web: ['client', 'contract', 'embedded.ts'],
  'repeat.ts': [],
  'service.ts': [
    'config.ts',
    'contract',
    'http',
    'journal',
    'metrics',
    'repeat.ts',
    'store',
    'tokens',
    'webhooks',
  ],
  cli: [
    'client',
    'config.ts',
    'contract',
    'embedded.ts',
    'journal',
    'json',
    'metrics',
    'service.ts',
    'store',
    'tokens',
    'transfer',
    'webhooks',
  ],
  'embedded.ts': [],
  'executable.ts': ['embedded.ts', 'main.ts'],
  'main.ts': ['cli', 'config.ts', 'contract', 'store'],
}

/** What only one part of the source may contain. */
const confined: [what: string, pattern: RegExp, where: RegExp][] = [
  ['HTTP requests and responses', /\b(IncomingMessage|ServerResponse)\b/, /^http\//],
  [
    'private parts of the HTTP server of Node.js',
    /\b(writeQueueSize|_dumpAndCloseReadable|onIncoming|httpAllowHalfOpen|shouldKeepAlive)\b/,
    /^http\/node\//,
  ],
  ['SQL', /\b(SELECT|INSERT INTO|PRAGMA|BEGIN)\b/, /^store\//],
  ['node:sqlite', /node:sqlite/, /^store\/sqlite\//],
  ['new connections to SQLite', /new DatabaseSync\(/, /^store\/sqlite\/open-database\.ts$/],
  [
    'the environment and the arguments',
    /process\.(env|argv)/,
    /^(executable|main)\.ts$|\/examples\.ts$/,
  ],
  ['the end of the process', /process\.exit\(/, /^cli\/signals\.ts$/],
]

const root = join(import.meta.dirname, '..', 'src')
const files = globSync('**/*.ts', { cwd: root })
const read = (file: string) => readFileSync(join(root, file), 'utf8')

describe('the architecture', () => {
  it('has the rooms of the table and no others', () => {
    const rooms = new Set(files.map(toRoom))
    assert.deepEqual([...rooms].sort(), Object.keys(imports).sort())
  })

  for (const file of files) {
    it(`allows the imports of ${file}`, () => {
      const allowed = [toRoom(file), ...(imports[toRoom(file)] ?? [])]
      const sources = [...read(file).matchAll(/(?:from|import\() ?'(\.[^']+)'/g)].map(
        ([, source = '']) => normalize(join(dirname(file), source)),
      )
      const forbidden = sources.filter(
        (source) => !allowed.includes(source) && !allowed.includes(toRoom(source)),
      )
      assert.deepEqual(forbidden, [])
    })
  }

  it('keeps the client fit for every runtime: its own code, and types of the contract', () => {
    const foreign = files
      .filter((file) => toRoom(file) === 'client')
      .flatMap((file) => [...read(file).matchAll(/^.*(?:from|import\() ?'([^']+)'/gm)])
      .filter(([line, source = '']) => {
        const isType = /^(?:import|export) type /.test(line) && source.startsWith('../contract/')
        return !source.startsWith('./') && !isType
      })
      .map(([line]) => line)
    assert.deepEqual(foreign, [])
  })

  // An import takes 40 ms of every start, because it loads Node's web client as well.
  it('takes node:http from process.getBuiltinModule', () => {
    const imported = /^import (?!type\b).* from 'node:http'/m
    const found = files.filter((file) => imported.test(read(file)))
    assert.deepEqual(found, [])
  })

  for (const [what, pattern, where] of confined) {
    it(`keeps ${what} in one room`, () => {
      const found = files.filter((file) => pattern.test(read(file)))
      assert.notDeepEqual(found, [])
      assert.deepEqual(
        found.filter((file) => !where.test(file)),
        [],
      )
    })
  }

  it('has short files', () => {
    const long = files.filter((file) => read(file).split('\n').length > 401)
    assert.deepEqual(long, [])
  })

  it('has comments that end before column 100', () => {
    const long = files.flatMap((file) =>
      read(file)
        .split('\n')
        .filter((line) => /^\s*(\/\/|\/?\*)/.test(line) && line.length > 100)
        .map((line) => `${file}: ${line.trim()}`),
    )
    assert.deepEqual(long, [])
  })

  it('has no circles of imports', () => {
    assert.deepEqual(findCircles(new Map(files.map((file) => [file, findSources(file)]))), [])
  })

  it('has no meaningless file names', () => {
    assert.deepEqual(
      files.filter((file) => /util|helper|common|manager/.test(file)),
      [],
    )
  })
})

describe('the README', () => {
  it('shows the version of this checkout, wherever it shows one', () => {
    const readme = readFileSync(join(root, '..', 'README.md'), 'utf8')
    const { version } = JSON.parse(readFileSync(join(root, '..', 'package.json'), 'utf8'))
    const shown = readme.match(/(?<=Plant Store |plant-store-)\d+\.\d+\.\d+[-.\w]*?(?=\s|\.tgz)/g)
    assert.deepEqual(shown, [version, version])
  })
})

describe('the dependencies', () => {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(root, '..', 'package.json'), 'utf8'),
  )
  const reasons = readFileSync(join(root, '..', 'docs', 'dependencies.md'), 'utf8')

  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    it(`have a reason in the docs: ${name}`, () => {
      assert.match(reasons, new RegExp(`\\| \`${name}\` \\|`))
    })
  }
})

/** The files that a file imports, except those of which it needs only types. */
function findSources(file: string): string[] {
  const imports = /^(?!import type|export type).*(?:from|import\() ?'(\.[^']+)'/gm
  return [...read(file).matchAll(imports)].map(([, source = '']) =>
    normalize(join(dirname(file), source)),
  )
}

function findCircles(sources: ReadonlyMap<string, string[]>): string[] {
  const circles: string[] = []
  const visited = new Set<string>()

  function visit(file: string, path: string[]): void {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (visited.has(file)) return
    visited.add(file)
    for (const source of sources.get(file) ?? []) visit(source, [...path, file])
  }

  for (const file of sources.keys()) visit(file, [])
  return circles
}

function toRoom(file: string): string {
  return file.split('/')[0] ?? file
}
