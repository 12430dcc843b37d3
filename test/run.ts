/**
 * Runs the tests of every change, or a suite: `node test/run.ts faults`, `package` or `deploy`, with
 * any flags of `node --test`. It is a program because npm's scripts cannot set variables or quote
 * patterns in a way that every shell understands.
 */
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The flags of suites whose files share a PostgreSQL server and keep their files in memory. */
const shared = [
  '--test-global-setup=test/support/global-setup.ts',
  ...['--test-concurrency=4', '--test-timeout=300000'],
]
const suites: Record<string, { files: string[]; flags: string[] }> = {
  every: { files: ['test/*.test.ts', 'test/!(faults)/*.test.ts'], flags: shared },
  faults: { files: ['test/faults/*.test.ts'], flags: shared },
  // One file after another, with their files on a real disk.
  'long faults': {
    files: [
      'test/faults/*.test.ts',
      'test/http/model.test.ts',
      'test/{metrics/requests,sim/simulation}.test.ts',
    ],
    flags: ['--test-concurrency=1'],
  },
  package: {
    files: [
      'test/package/{client-package,executable,generated-clients,new-checkout,package}.ts',
      'test/runtimes/runtimes.ts',
    ],
    flags: ['--test-concurrency=2', '--test-timeout=900000'],
  },
  deploy: {
    files: [
      'test/deploy/{benchmark,container,files,newest-node,systemd,workflows}.ts',
      'test/{litestream/standby,patroni/failover,postgres-versions/versions}.ts',
      'test/{runners/runners,schemathesis/schemathesis,spreadsheet/libreoffice}.ts',
    ],
    flags: ['--test-concurrency=1', '--test-timeout=1800000'],
  },
}

const root = join(import.meta.dirname, '..')
const [name = '', ...rest] = process.argv.slice(2)
const isNamed = name in suites
const isLong = name === 'faults' && process.env.FAULTS === 'long'
const suite = suites[isLong ? 'long faults' : isNamed ? name : 'every']
const files = globSync(suite?.files ?? [], { cwd: root }).sort()
const reporters = ['spec', './test/support/summary.ts'].flatMap((reporter) => [
  `--test-reporter=${reporter}`,
  '--test-reporter-destination=stdout',
])
const args = [
  // The runner tracks every promise until it is collected, which is cheapest while it is young.
  ...['--test', '--max-semi-space-size=64', ...(suite?.flags ?? []), ...reporters],
  ...(isNamed ? rest : process.argv.slice(2)),
  ...files,
]
const cache = join(root, 'node_modules', '.cache', `node-${process.versions.node}`)
const env = { ...process.env, NODE_COMPILE_CACHE: cache }
await compileTests()
spawn(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 0 : 1)
})

/**
 * Compiles the tests, and all that they import, for the processes that run them: a twentieth less
 * work in a new checkout. The first module throws, so none of the others is evaluated.
 */
async function compileTests(): Promise<void> {
  module.enableCompileCache(cache)
  const urls = [
    'data:text/javascript,throw 0',
    ...files.map((file) => `${pathToFileURL(join(root, file))}`),
  ]
  const imports = urls.map((url) => `import ${JSON.stringify(url)}`)
  await import(`data:text/javascript,${encodeURIComponent(imports.join('\n'))}`).catch(() => {})
  module.flushCompileCache()
}
