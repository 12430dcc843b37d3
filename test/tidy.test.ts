import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, it } from 'node:test'

/** The rooms of `src`, in order: each may import from those before it. */
const rooms = [
  ...['old-node.ts', 'embedded.ts', 'errno.ts', 'paths.ts', 'repeat.ts'],
  ...['contract', 'json', 'journal', 'store', 'tokens', 'transfer', 'webhooks', 'metrics', 'http'],
  ...['config.ts', 'service.ts', 'testing.ts', 'cli', 'main.ts', 'executable.ts'],
]

/** What stands beside them, and what may be imported from there. */
const beside: Record<string, string[]> = {
  web: ['client', 'contract', 'embedded.ts'],
  http: ['web'],
  'testing.ts': ['client'],
  cli: ['client'],
}

/** What only one part of the source may contain. */
const confined: [what: string, pattern: RegExp, where: RegExp][] = [
  ['HTTP requests and responses', /\b(IncomingMessage|ServerResponse)\b/, /^src\/http\//],
  [
    'private parts of the HTTP server of Node.js',
    /\b(writeQueueSize|_dumpAndCloseReadable|_header|onIncoming|httpAllowHalfOpen|shouldKeepAlive)\b/,
    /^src\/http\/node\//,
  ],
  ['SQL', /\b(SELECT|INSERT INTO|PRAGMA|BEGIN)\b/, /^src\/store\//],
  ['node:sqlite', /node:sqlite/, /^src\/store\/sqlite\//],
  [
    'new connections to SQLite',
    /new (sqlite\.)?DatabaseSync\(/,
    /^src\/store\/sqlite\/database\.ts$/,
  ],
  ['the environment and the arguments', /process\.(env|argv)/, /^src\/(executable|main)\.ts$/],
  ['the end of the process', /process\.exit\(/, /^src\/cli\/signals\.ts$/],
]

const root = join(import.meta.dirname, '..')
const files = globSync('{src,client,web}/**/*.ts', { cwd: root })
const read = (file: string) => readFileSync(join(root, file), 'utf8')

describe('the architecture', () => {
  it('has the rooms of the list and no others', () => {
    const found = new Set(files.map(toRoom))
    assert.deepEqual([...found].sort(), [...rooms, 'client', 'web'].sort())
  })

  for (const file of files) {
    it(`allows the imports of ${file}`, () => {
      const room = toRoom(file)
      const allowed = [...rooms.slice(0, rooms.indexOf(room) + 1), room, ...(beside[room] ?? [])]
      const forbidden = findSources(file).filter((source) => !allowed.includes(toRoom(source)))
      assert.deepEqual(forbidden, [])
    })
  }

  it('keeps the client fit for every runtime: it imports its own code only', () => {
    const foreign = files
      .filter((file) => toRoom(file) === 'client')
      .flatMap((file) => [...read(file).matchAll(/^.*(?:from|import\() ?'(?!\.\/)[^']+'/gm)])
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
      const elsewhere = found.filter((file) => !where.test(file))
      assert.deepEqual(elsewhere, [])
    })
  }

  it('has short files', () => {
    const long = files.filter((file) => read(file).split('\n').length > 401)
    assert.deepEqual(long, [])
  })

  it('has no two files of one name, unless they are the same thing on two engines', () => {
    const elsewhere = files.filter((file) => !/^src\/store\/(sqlite|postgres)\//.test(file))
    const names = elsewhere.map((file) => file.split('/').at(-1))
    const twice = names.filter((name, at) => names.indexOf(name) !== at)
    const ofStore = (name = '') => files.includes(`src/store/${name}`)
    const engines = files.filter((file) => !elsewhere.includes(file))
    const shared = engines.filter((file) => names.includes(file.split('/').at(-1)))
    assert.deepEqual(twice, [])
    const unlike = shared.filter((file) => !ofStore(file.split('/').at(-1)))
    assert.deepEqual(unlike, [])
  })

  it('uses only documented parts of pg', () => {
    const hidden =
      /\bclient\.(connection|_\w+)|\b(getStartupConf|submittedNamedStatements|parsedStatements|handle(DataRow|CopyData))\b/
    const isOfPg = (file: string) => file.startsWith('src/store/postgres/')
    const found = files.filter((file) => isOfPg(file) && hidden.test(read(file)))
    assert.deepEqual(found, [])
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

  it('has no circles of imports, not even of types', () => {
    assert.deepEqual(findCircles(new Map(files.map((file) => [file, findSources(file)]))), [])
  })

  it('has no meaningless file names', () => {
    const meaningless = files.filter((file) => /util|helper|common|manager/.test(file))
    assert.deepEqual(meaningless, [])
  })
})

it('the README shows the version of this checkout, wherever it shows one', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const shown = readme.match(/(?<=Plant Store |plant-store-)\d+\.\d+\.\d+[-.\w]*?(?=\s|\.tgz)/g)
  assert.deepEqual(shown, [version])
})

it('the repository names no address of its own: it has none', () => {
  const pages = globSync('{*,client/*,docs/**/*,deploy/*}.{md,json,yaml}', { cwd: root })
  assert.ok(pages.length > 50)
  const own = /(git clone|:\/\/[\w.]+\/plant-store|"(homepage|repository|bugs)":)/
  const found = pages.filter((page) => page !== 'package-lock.json' && own.test(read(page)))
  assert.deepEqual(found, [])
})

const { dependencies, devDependencies } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
)
const reasons = readFileSync(join(root, 'docs', 'dependencies.md'), 'utf8')

for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
  it(`the docs have a reason for the dependency ${name}`, () => {
    assert.match(reasons, new RegExp(`\\| \`${name}\` \\|`))
  })
}

/** The files that a file imports. */
function findSources(file: string): string[] {
  return [...read(file).matchAll(/(?:from|import\() ?'(\.[^']+)'/g)].map(([, source = '']) =>
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
  const [folder = '', name = ''] = file.split('/')
  return folder === 'src' ? name : folder
}
