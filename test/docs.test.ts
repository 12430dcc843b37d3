import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { start } from './support/command.ts'
import { newFolder } from './support/folder.ts'
import { findFreePort } from './support/postgres.ts'

const root = join(import.meta.dirname, '..')
const client = pathToFileURL(join(root, 'client', 'index.ts')).href
const readPage = (name: string) => readFileSync(join(root, name), 'utf8')

/** Commands, and the block behind them, which shows what they print. */
const example = /^```sh\n([\s\S]*?)^```\n(?:\n```\n([\s\S]*?)^```\n)?/gm
const isMissing =
  process.platform === 'win32' || spawnSync('bash', ['-c', 'curl --version']).status !== 0

for (const name of ['README.md', 'docs/tutorial.md']) {
  const skip = isMissing && 'bash or curl is not installed'
  it(`${name} has commands that print what it shows`, { skip, timeout: 120_000 }, async () => {
    const examples = [...readPage(name).matchAll(example)]
      .filter(([, commands = '']) => commands !== 'npm start\n')
      .map(([, commands = '', shown]) => ({ commands, shown }))
    assert.ok(examples.length >= 2)
    const folder = realpathSync(newFolder())
    symlinkSync(join(root, 'docs'), join(folder, 'docs'))
    const { child, waitFor, ended, output } = start(['serve', '--port', '0'], { folder })
    const [, url = ''] = await waitFor(/address +http:\/\/(\S+)[\s\S]*\n {2}curl /)
    const [, banner = ''] = /^```\n(Plant Store [\s\S]*?)```/m.exec(readPage(name)) ?? []
    if (banner !== '') assert.equal(simplify(output.stdout, url, folder), simplify(banner))
    const [first = ''] = banner === '' ? [] : (/^ {2}curl .*$/m.exec(output.stdout) ?? [])
    const port = await findFreePort()
    const program = [`${prelude}${first}\n`, ...examples.map(({ commands }) => commands)]
      .join('echo @@@\n')
      .replaceAll(/(127\.0\.0\.1|localhost):3000/g, url)
      .replaceAll('127.0.0.1:4000', `127.0.0.1:${port}`)
      // A person types slower than a program starts to listen.
      .replaceAll(
        / &$/gm,
        ` & until command curl -so /dev/null 127.0.0.1:${port}; do sleep 0.1; done`,
      )
      .replaceAll('plant-store/client', client)
    const { stdout } = spawnSync('bash', ['-c', program], {
      cwd: folder,
      env: { PATH: process.env.PATH, NODE: process.execPath, ROOT: root, PORT: String(port) },
      encoding: 'utf8',
      timeout: 100_000,
    })
    child.kill()
    await ended
    const [answer = '', ...printed] = stdout.split('@@@\n')
    assert.ok(readPage(name).includes(`\`\`\`\n${answer}\`\`\``) || first === '', answer)
    for (const [index, { commands, shown = '' }] of examples.entries()) {
      const actual = simplify(printed[index] ?? '', url, folder)
      assert.equal(actual, simplify(shown), commands)
    }
  })
}

it('docs/ARCHITECTURE.md names files that are there', () => {
  const rows = [...readPage('docs/ARCHITECTURE.md').matchAll(/^\| ([\w/]+) \| (`.*) \|$/gm)]
  const named = rows.flatMap(([, room = '', text = '']) =>
    [...text.matchAll(/`([\w/-]+\.(?:ts|md))`/g)].map(([, file = '']) => join(room, file)),
  )
  assert.ok(named.length > 30)
  const isThere = (file: string) =>
    existsSync(join(root, 'src', file)) || existsSync(join(root, file))
  const missing = named.filter((file) => !isThere(file))
  assert.deepEqual(missing, [])
})

it('test/README.md names tests that are there, and so does docs/reliability.md', () => {
  const rows = readPage('test/README.md').matchAll(/^\| .* \| (`.*) \|$/gm)
  const suites = readPage('docs/reliability.md').matchAll(/^\| ((?:`[\w/.-]+`(?:, )?)+)/gm)
  const toNames = ([, cell = '']: RegExpExecArray) =>
    [...cell.matchAll(/`([\w/.-]+)`/g)].map(([, name = '']) => name)
  const promised = [...rows].flatMap(toNames).map((name) => `test/${name}`)
  const tried = [...suites].flatMap(toNames)
  assert.ok(promised.length > 100 && tried.length > 30)
  const isThere = (name: string) =>
    ['', '.ts', '.test.ts'].some((ending) => existsSync(join(root, name + ending)))
  const inFaults = (name: string) => (name.includes('/') ? name : `test/faults/${name}`)
  const missing = [...promised, ...tried.map(inFaults)].filter((name) => !isThere(name))
  assert.deepEqual(missing, [])
})

describe('the pages', () => {
  const pages = globSync('{*,client/*,docs/**/*,src/**/*,test/*,.github/**/*}.md', { cwd: root })
  const findLinks = (page: string) =>
    [...readPage(page).matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(
      ([, path = '', anchor]) => ({
        file: path === '' ? page : join(dirname(page), path),
        anchor,
        link: `${page}: ${path}#${anchor}`,
      }),
    )

  it('link to files and headings that are there', () => {
    const links = pages.flatMap(findLinks)
    assert.ok(links.length > 100)
    const isThere = ({ file, anchor }: (typeof links)[number]) =>
      existsSync(join(root, file)) &&
      (anchor === undefined || toAnchors(readPage(file)).includes(anchor))
    const broken = links.filter((link) => !isThere(link)).map(({ link }) => link)
    assert.deepEqual(broken, [])
  })

  it('name commands of package.json that are there', () => {
    const { scripts } = JSON.parse(readPage('package.json'))
    const named = pages
      .filter((page) => page !== 'CHANGELOG.md')
      .flatMap((page) => readPage(page).match(/(?<=npm run )[\w:-]*\w/g) ?? [])
    assert.ok(named.length > 20)
    const unknown = named.filter((name) => !(name in scripts))
    assert.deepEqual(unknown, [])
  })

  it('tell a decision in at most 40 lines', () => {
    const long = pages
      .filter((page) => page.startsWith('docs/decisions/'))
      .filter((page) => readPage(page).trimEnd().split('\n').length > 40)
    assert.deepEqual(long, [])
  })

  it('are all reached from the README', () => {
    const reached = new Set(['README.md'])
    for (const page of reached)
      if (page.endsWith('.md')) for (const { file } of findLinks(page)) reached.add(file)
    const docs = pages.filter((page) => /^docs\/[^/]+$/.test(page))
    const lost = docs.filter((page) => !reached.has(page))
    assert.deepEqual(lost, [])
  })

  it('have pictures in which every arrow joins two boxes', () => {
    const pictures = pages.flatMap((page) =>
      [...readPage(page).matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)].map(([, text = '']) => ({
        page,
        lines: text.trimEnd().split('\n'),
      })),
    )
    assert.ok(pictures.length >= 5)
    for (const { page, lines } of pictures) checkPicture(page, lines)
  })
})

/** The anchors of the headings of a page, as forges make them. */
function toAnchors(text: string): string[] {
  const headings = text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)
  return [...headings].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** What declares a box, and what joins two, in the kinds of pictures that Mermaid draws for us. */
const box =
  /^ *(?:(?:subgraph )?(\w+)\[\(?"[^"]+"\)?\]|participant (\w+) as [^;]+|state "[^"]+" as (\w+))$/
const end = String.raw`((?:\w+|\[\*\])(?: & \w+)*)`
const arrow = new RegExp(`^ *${end} ?(?:--?>?>|-\\.->|<-->)(?:\\|"[^"]+"\\|)? ?${end}(?:: [^;]+)?$`)
const rest = /^ *(end|direction (LR|TB)|Note (over|right of) \w+(,\w+)?: [^;]+|loop [^;]+)$/

function checkPicture(page: string, [first = '', ...lines]: string[]): void {
  assert.match(first, /^(flowchart (LR|TB)|sequenceDiagram|stateDiagram-v2)$/, page)
  const boxes = new Set(['[*]', ...lines.flatMap((line) => box.exec(line)?.slice(1) ?? [])])
  for (const line of lines.filter((one) => !box.test(one) && !rest.test(one))) {
    const [, from = line, to = line] = arrow.exec(line) ?? []
    for (const name of [...from.split(' & '), ...to.split(' & ')])
      assert.ok(boxes.has(name), `${page}: ${name} in ${line}`)
  }
}

/** `npx` in a checkout runs the checkout's own commands; here it has another folder to run in. */
const prelude = `
exec 2>&1
trap 'kill $(jobs -p) 2> /dev/null' EXIT
curl() { command curl -sS "$@"; }
npx() { if [ "$1" = node ]; then shift; "$NODE" "$@"; else shift; "$NODE" "$ROOT/bin/plant-store.js" "$@"; fi; }
`

/** Replaces what differs from run to run. */
function simplify(text: string, url = '127.0.0.1:3000', folder = '/srv/plant-store'): string {
  return text
    .replaceAll(url, '127.0.0.1:3000')
    .replaceAll(folder, '/srv/plant-store')
    .replace(/plst_[\w…]+/g, 'plst_…')
    .replace(/(tok|whk)_\w+/g, '$1_…')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/"position":"[^"]+"/g, '"position":"…"')
    .replace(/\(\d+\.\d s(, [\d,]+\/s)?\)/g, '(… s)')
    .replace(/^.* free space .*$/m, 'free space')
    .replace(/[\d.]+ MiB/g, '… MiB')
    .replace(/SQLite +release [\d.]+/g, 'SQLite release')
    .trim()
}
