import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, it } from 'node:test'

/** Which room may import from which. What is not named here is not allowed. */
const imports: Record<string, string[]> = {
  contract: [],
  json: ['contract'],
  store: ['contract', 'json/write.ts'],
  transfer: ['contract', 'json', 'store/snapshots.ts', 'store/store.ts'],
  tokens: ['contract', 'store/file-errors.ts', 'store/store.ts', 'repeat.ts'],
  http: [
    'contract',
    'json',
    'store/failures.ts',
    'store/store.ts',
    'tokens/verify.ts',
    'transfer/write.ts',
  ],
  'config.ts': ['http/cors.ts', 'http/rate-limit.ts', 'store/open.ts', 'tokens/operator-token.ts'],
  'repeat.ts': [],
  'service.ts': ['config.ts', 'contract', 'http', 'repeat.ts', 'store', 'tokens'],
  cli: ['config.ts', 'contract', 'json', 'service.ts', 'store', 'tokens', 'transfer'],
  'main.ts': ['cli', 'config.ts', 'contract', 'store'],
}

/** What may be seen in one place only. */
const confined: [what: string, pattern: RegExp, where: RegExp][] = [
  ['what comes in over HTTP', /\b(IncomingMessage|ServerResponse)\b/, /^http\//],
  ['SQL', /\b(SELECT|INSERT INTO|PRAGMA|BEGIN)\b/, /^store\//],
  ['node:sqlite', /node:sqlite/, /^store\/sqlite\//],
  ['the environment and the arguments', /process\.(env|argv)/, /^main\.ts$/],
  ['what ends the process', /process\.exit\(/, /^cli\/signals\.ts$/],
]

const root = join(import.meta.dirname, '..', 'src')
const files = globSync('**/*.ts', { cwd: root })
const read = (file: string) => readFileSync(join(root, file), 'utf8')

describe('the architecture', () => {
  it('has the rooms of the table, and no other', () => {
    const rooms = new Set(files.map(toRoom))
    assert.deepEqual([...rooms].sort(), Object.keys(imports).sort())
  })

  for (const file of files) {
    it(`lets ${file} import only what its room may`, () => {
      const allowed = [toRoom(file), ...(imports[toRoom(file)] ?? [])]
      const sources = [...read(file).matchAll(/(?:from|import\() ?'(\.[^']+)'/g)].map(
        ([, source = '']) => normalize(join(dirname(file), source)),
      )
      const strangers = sources.filter(
        (source) => !allowed.includes(source) && !allowed.includes(toRoom(source)),
      )
      assert.deepEqual(strangers, [])
    })
  }

  for (const [what, pattern, where] of confined) {
    it(`keeps ${what} in one place`, () => {
      const places = files.filter((file) => pattern.test(read(file)))
      assert.notDeepEqual(places, [])
      assert.deepEqual(
        places.filter((file) => !where.test(file)),
        [],
      )
    })
  }

  it('has files that can be read at one go', () => {
    const long = files.filter((file) => read(file).split('\n').length > 250)
    assert.deepEqual(long, [])
  })

  it('has no name that says nothing', () => {
    assert.deepEqual(
      files.filter((file) => /util|helper|common|manager/.test(file)),
      [],
    )
  })
})

describe('the dependencies', () => {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(root, '..', 'package.json'), 'utf8'),
  )
  const reasons = readFileSync(join(root, '..', 'docs', 'dependencies.md'), 'utf8')

  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    it(`give a reason for ${name}`, () => {
      assert.match(reasons, new RegExp(`\\| \`${name}\` \\|`))
    })
  }
})

function toRoom(file: string): string {
  return file.split('/')[0] ?? file
}
